package integration

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/gen"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// What a claim reads depends on the jobs it returns, not on how many wait in a lane, how many
// lanes there are, or how many are being processed; and it stays so with statistics of a time
// when the table was empty.
func TestInOrder_CostOfAClaimDoesNotGrow(t *testing.T) {
	t.Parallel()
	type lanes struct {
		prefix      string
		count, jobs int
	}
	backlogs := map[string][]lanes{
		"hot key":    {{"hot:", 1, 50000}, {"cold:", 500, 1}},
		"many lanes": {{"lane:", 100000, 1}},
		"in flight":  {{"busy:", 20000, 1}, {"lane:", 2000, 1}},
	}
	for name, backlog := range backlogs {
		for statistics, refresh := range map[string]string{"of the empty table": "VACUUM", "fresh": "VACUUM (ANALYZE)"} {
			t.Run(name+", statistics "+statistics, func(t *testing.T) {
				t.Parallel()
				database, queue := newOrdered(t)
				database.Exec(t, "ALTER TABLE holdfast.inbox SET (autovacuum_enabled = false)")
				database.Exec(t, "ANALYZE holdfast.inbox")
				for _, part := range backlog {
					fillLanes(t, database, part.prefix, part.count, part.jobs)
				}
				database.Exec(t, `UPDATE holdfast.inbox
					SET status = 'processing', claimed_by = 'w2', claimed_at = now(), lease_expires_at = now()
					WHERE partition_key LIKE 'busy:%'`)
				database.Exec(t, refresh+" holdfast.inbox")
				// As many as a worker with the default settings has slots, and a full batch.
				for jobs, most := range map[int]int64{8: 300, 25: 750} {
					plan := explainClaim(t, database, jobs)
					t.Logf("%d buffers, %d steps, %d jobs, %.1f ms", plan.buffers(), plan.steps(), plan.rows(), plan.time)
					plan.checkIndexes(t)
					if plan.buffers() > most || plan.steps() > 4*jobs || plan.rows() != jobs {
						t.Errorf("a claim of %d jobs reads %d buffers in %d steps, want %d jobs, at most %d and %d", plan.rows(), plan.buffers(), plan.steps(), jobs, most, 4*jobs)
					}
				}
				if jobs := claimLanes(t, queue, laneRequest("mail")); len(jobs) != 100 {
					t.Errorf("claimed %d jobs, want a batch of 100", len(jobs))
				}
			})
		}
	}
}

// fillLanes adds so many lanes of so many jobs each to the ordered queue.
func fillLanes(tb testing.TB, database *pgtest.Database, prefix string, lanes, jobs int) {
	tb.Helper()
	database.Exec(tb, `INSERT INTO holdfast.inbox (id, partition_bucket, ordered, queue, kind, partition_key, payload)
		SELECT holdfast.new_job_id(lane.bucket), lane.bucket, true, 'mail', 'note', lane.key, '{}'
		FROM (SELECT $1 || i AS key, holdfast.bucket_of($1 || i, 1024) AS bucket FROM generate_series(1, $2::integer) AS i) AS lane
		CROSS JOIN generate_series(1, $3::integer)`, prefix, lanes, jobs)
}

// laneNode is a node of a plan as EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) prints it.
type laneNode struct {
	NodeType     string     `json:"Node Type"`
	SubplanName  string     `json:"Subplan Name"`
	RelationName string     `json:"Relation Name"`
	IndexName    string     `json:"Index Name"`
	Rows         float64    `json:"Actual Rows"`
	Hit          int64      `json:"Shared Hit Blocks"`
	Read         int64      `json:"Shared Read Blocks"`
	Plans        []laneNode `json:"Plans"`
}

type lanePlan struct {
	root laneNode
	time float64 // Of planning and execution, in milliseconds.
}

// explainClaim runs the product's claim of so many jobs, as its transaction runs it, and rolls
// it back.
func explainClaim(t *testing.T, database *pgtest.Database, batch int) lanePlan {
	t.Helper()
	tx, err := database.Conn(t).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	buckets := make([]int32, 1024)
	for i, bucket := range everyBucket() {
		buckets[i] = int32(bucket)
	}
	// The hot key's comes first.
	first := domain.BucketOf("hot:1", 1024)
	buckets = slices.Concat(buckets[first:], buckets[:first])
	queries := gen.New()
	if err := queries.PlanByIndex(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	buckets, err = queries.ListLaneBuckets(t.Context(), tx, gen.ListLaneBucketsParams{PartitionBuckets: buckets, Queue: "mail", Bound: int32(batch)})
	if err != nil {
		t.Fatal(err)
	}
	if err := queries.LockLanes(t.Context(), tx, gen.LockLanesParams{PartitionBuckets: buckets, Queue: "mail"}); err != nil {
		t.Fatal(err)
	}
	// A session reads the catalog for a function with the first call of it.
	if _, err := tx.Exec(t.Context(), "SELECT holdfast.incarnation()"); err != nil {
		t.Fatal(err)
	}
	var text []byte
	err = tx.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+generated(t, "ClaimLanes"), pgx.QueryExecModeExec,
		"mail", buckets, make([]string, len(buckets)), time.Duration(0), int32(80), int32(7), int32(batch), "w1", lease).Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	var explained []struct {
		Plan      laneNode
		Planning  float64 `json:"Planning Time"`
		Execution float64 `json:"Execution Time"`
	}
	if err := json.Unmarshal(text, &explained); err != nil {
		t.Fatal(err)
	}
	return lanePlan{root: explained[0].Plan, time: explained[0].Planning + explained[0].Execution}
}

func (p lanePlan) buffers() int64 { return p.root.Hit + p.root.Read }
func (p lanePlan) rows() int      { return int(p.root.Rows) }

// steps counts the keys that the walk came to, and the ends of buckets.
func (p lanePlan) steps() (steps int) {
	p.root.visit(func(node laneNode) {
		if node.SubplanName == "CTE walk" {
			steps = int(node.Rows)
		}
	})
	return steps
}

// checkIndexes fails on every other way to the inbox than those that are meant.
func (p lanePlan) checkIndexes(t *testing.T) {
	t.Helper()
	meant := []string{"inbox_lane_idx", "inbox_lane_processing_idx", "inbox_pkey"}
	p.root.visit(func(node laneNode) {
		scan := node.RelationName == "inbox" && node.NodeType != "ModifyTable" || node.NodeType == "Bitmap Index Scan"
		if scan && !slices.Contains(meant, node.IndexName) || node.NodeType == "Sort" {
			t.Errorf("the plan has a %s of %q by %q", node.NodeType, node.RelationName, node.IndexName)
		}
	})
}

func (n laneNode) visit(look func(laneNode)) {
	look(n)
	for _, plan := range n.Plans {
		plan.visit(look)
	}
}
