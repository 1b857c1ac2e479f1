package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/gen"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// fill adds jobs of one key, and one job of each of so many other keys.
func fill(t *testing.T, database *pgtest.Database, queue string, ordered bool, key string, jobs, others int) {
	t.Helper()
	database.Exec(t, `
		INSERT INTO holdfast.inbox (id, partition_bucket, queue, kind, partition_key, ordered, payload)
		SELECT holdfast.new_job_id(placed.bucket), placed.bucket, $1, 'note', placed.key, $2, '{}'
		FROM (
			SELECT key, holdfast.bucket_of(key, 1024) AS bucket
			FROM (
				SELECT $3::text AS key FROM generate_series(1, $4::integer)
				UNION ALL
				SELECT 'other:' || n FROM generate_series(1, $5::integer) AS n
			) AS keys
		) AS placed`, queue, ordered, key, jobs, others)
}

func hotKeys(t *testing.T, database *pgtest.Database, queue string, limit int) domain.KeySample {
	t.Helper()
	sample, err := domain.HotKeys(t.Context(), database.Pool, queue, limit)
	if err != nil {
		t.Fatal(err)
	}
	return sample
}

func wantShare(t *testing.T, share domain.KeyShare, key string, want float64) {
	t.Helper()
	if share.Key != key || math.Abs(share.Share-want) > 0.005 {
		t.Errorf("%+v, want key %s with a share of %.3f", share, key, want)
	}
}

func TestHotKeys_SmallQueueIsCountedAsItIs(t *testing.T) {
	t.Parallel()
	for _, ordered := range []bool{false, true} {
		t.Run(fmt.Sprintf("ordered %t", ordered), func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			if sample := hotKeys(t, database, "mail", 9); sample.Jobs != 0 || len(sample.Keys) != 0 {
				t.Errorf("an empty queue gives %+v", sample)
			}
			fill(t, database, "mail", ordered, "tenant:7", 60, 30)
			fill(t, database, "mail", ordered, "tenant:8", 10, 0)
			fill(t, database, "another", ordered, "tenant:9", 50, 0)
			sample := hotKeys(t, database, "mail", 3)
			if sample.Jobs != 100 || len(sample.Keys) != 3 || sample.Keys[0].Jobs != 60 {
				t.Fatalf("%+v", sample)
			}
			wantShare(t, sample.Keys[0], "tenant:7", 0.6)
			wantShare(t, sample.Keys[1], "tenant:8", 0.1)
			wantShare(t, sample.Keys[2], "other:1", 0.01)
		})
	}
}

// A queue that became ordered meanwhile, or was, has jobs of both kinds.
func TestHotKeys_BothKindsOfJobsAreCounted(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	fill(t, database, "mail", false, "tenant:7", 15, 5)
	fill(t, database, "mail", true, "tenant:7", 45, 35)
	sample := hotKeys(t, database, "mail", 1)
	if sample.Jobs != 100 || len(sample.Keys) != 1 {
		t.Fatalf("%+v", sample)
	}
	wantShare(t, sample.Keys[0], "tenant:7", 0.6)
}

func TestHotKeys_JobsThatAreNotDueOrNotPendingAreLeftOut(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	fill(t, database, domain.DefaultQueue, false, "tenant:7", 3, 1)
	fill(t, database, domain.DefaultQueue, false, "tenant:8", 2, 0)
	database.Exec(t, "UPDATE holdfast.inbox SET available_at = now() + interval '1 hour' WHERE partition_key = 'other:1'")
	claim(t, database.Queue(t), "w1", 1)
	if sample := hotKeys(t, database, domain.DefaultQueue, 9); sample.Jobs != 4 {
		t.Errorf("%+v, want the four that are due", sample)
	}
}

// One key has 100,000 jobs and 1,000 others one each: it shows its weight, and what the
// sample reads does not grow when the backlog doubles, with and without statistics.
func TestHotKeys_CostIsBoundedWhateverTheBacklog(t *testing.T) {
	t.Parallel()
	for _, ordered := range []bool{false, true} {
		t.Run(fmt.Sprintf("ordered %t", ordered), func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			database.Exec(t, "ALTER TABLE holdfast.inbox SET (autovacuum_enabled = false)")
			fill(t, database, "mail", ordered, "tenant:7", 100_000, 1000)
			once := buffersOfSample(t, database, ordered)
			sample := hotKeys(t, database, "mail", 2)
			wantShare(t, sample.Keys[0], "tenant:7", 20_000.0/21_000)
			fill(t, database, "mail", ordered, "tenant:7", 100_000, 0)
			twice := buffersOfSample(t, database, ordered)
			database.Exec(t, "ANALYZE holdfast.inbox")
			analyzed := buffersOfSample(t, database, ordered)
			t.Logf("buffers: %.0f, with twice the backlog %.0f, with statistics %.0f", once, twice, analyzed)
			for _, touched := range []float64{once, twice, analyzed} {
				if touched > 12_000 || touched > 1.2*once {
					t.Errorf("a sample touches %.0f buffers, after %.0f with half the backlog", touched, once)
				}
			}
		})
	}
}

// buffersOfSample runs the statement under EXPLAIN and tells how many buffers it touched. No
// plan of it reads a table from end to end.
func buffersOfSample(t *testing.T, database *pgtest.Database, ordered bool) float64 {
	t.Helper()
	var recorded statement
	if ordered {
		_, _ = gen.New().SampleLanes(t.Context(), &recorded, gen.SampleLanesParams{Queue: "mail", BeforeBucket: 1024, MaxLanes: 2000})
	} else {
		_, _ = gen.New().SampleKeys(t.Context(), &recorded, gen.SampleKeysParams{Queue: "mail", MaxRows: 10})
	}
	arguments := append([]any{pgx.QueryExecModeSimpleProtocol}, recorded.arguments...)
	document := pgtest.Value[[]byte](t, database, "EXPLAIN (ANALYZE, BUFFERS, FORMAT json) "+recorded.sql, arguments...)
	var explained []struct{ Plan, JIT map[string]any }
	if err := json.Unmarshal(document, &explained); err != nil {
		t.Fatalf("%v:\n%s", err, document)
	}
	plan := explained[0].Plan
	if explained[0].JIT != nil {
		t.Error("the plan is compiled, which takes longer than to run it")
	}
	forbidScans(t, plan)
	return plan["Shared Hit Blocks"].(float64) + plan["Shared Read Blocks"].(float64)
}

func forbidScans(t *testing.T, plan map[string]any) {
	t.Helper()
	if plan["Relation Name"] == "inbox" && plan["Node Type"] != "Index Scan" && plan["Node Type"] != "Index Only Scan" {
		t.Errorf("the plan has a %s of the inbox", plan["Node Type"])
	}
	below, _ := plan["Plans"].([]any)
	for _, child := range below {
		forbidScans(t, child.(map[string]any))
	}
}

// statement is a DBTX that runs nothing and keeps what it was asked to run.
type statement struct {
	gen.DBTX
	sql       string
	arguments []any
}

func (s *statement) Query(_ context.Context, sql string, arguments ...any) (pgx.Rows, error) {
	s.sql, s.arguments = sql, arguments
	return nil, errors.New("the statement is recorded, not run")
}
