package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// During a deploy, programs of two versions work on one queue. Here the earlier one takes jobs
// through their lives on the newest schema, and each takes over what the other left.
func TestEvolution_OlderProgramsWorkBesideTheNewest(t *testing.T) {
	t.Parallel()
	for _, version := range frozenVersions(t) {
		t.Run(fmt.Sprintf("version %d", version), func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			old, newest := programOf(t, version, database), database.Queue(t)
			old.call(t, "JoinWorker", values{"ID": "old", "Queues": []string{domain.DefaultQueue}, "Metadata": json.RawMessage(`{}`)})

			plain := old.enqueue(t, "EnqueuePlainJob", nil)
			keyed := old.enqueue(t, "EnqueueJob", values{"IdempotencyKey": "receipt:1"})
			if again := old.enqueue(t, "EnqueueJob", values{"IdempotencyKey": "receipt:1"}); again != keyed {
				t.Errorf("one key is two jobs, %s and %s", keyed, again)
			}
			theirs := enqueue(t, database)
			dying := old.enqueue(t, "EnqueuePlainJob", nil)
			held := old.claim(t, 4)

			if renewed := old.settle(t, "RenewLeases", held, plain, keyed, theirs, dying); len(renewed) != 4 {
				t.Errorf("%d of 4 leases were renewed", len(renewed))
			}
			old.settle(t, "CompleteJobs", held, plain)
			old.settle(t, "RetryJobs", held, keyed)
			old.settle(t, "FailJobs", held, theirs)
			database.ExpireLease(t, dying)
			if taken, _, err := newest.Reclaim(t.Context(), 0); err != nil || len(taken) != 1 || taken[0].Claim.ID != dying {
				t.Fatalf("the newest program reclaims %v (error %v)", taken, err)
			}
			if late := old.settle(t, "CompleteJobs", held, plain, dying); len(late) != 0 {
				t.Errorf("claims that are over complete %v", late)
			}

			database.EndWait(t, keyed)
			database.EndWait(t, dying)
			again := claim(t, newest, "new", 2)
			if len(again) != 2 || again[0].Generation <= held[dying].generation {
				t.Fatalf("the newest program claims %v after %v", again, held)
			}
			database.ExpireLease(t, again[0].ID)
			if taken := old.call(t, "ReclaimExpiredLeases", values{"AfterGeneration": 0, "Batch": 10}); len(taken) != 1 {
				t.Errorf("the older program reclaims %v", taken)
			}
			mustSettle(t, newest, again[1], domain.Outcome{}, domain.StatusCompleted)
			database.EndWait(t, again[0].ID)
			old.settle(t, "CompleteJobs", old.claim(t, 1), again[0].ID)

			for id, want := range map[domain.JobID]domain.Status{
				plain: domain.StatusCompleted, keyed: domain.StatusCompleted, dying: domain.StatusCompleted, theirs: domain.StatusFailed,
			} {
				wantStatus(t, database, id, want)
			}
		})
	}
}

func TestEvolution_OlderProgramsKeepLanesInOrderBesideTheNewest(t *testing.T) {
	t.Parallel()
	for _, version := range frozenVersions(t) {
		t.Run(fmt.Sprintf("version %d", version), func(t *testing.T) {
			t.Parallel()
			database, newest := newOrdered(t)
			old := programOf(t, version, database)
			lane := values{"Queue": "mail", "PartitionKey": "order:1"}
			first := old.enqueue(t, "EnqueuePlainJob", lane)
			second := old.enqueue(t, "EnqueuePlainJob", lane)

			held := old.claimLanes(t)
			if len(held) != 1 || held[first].generation == 0 {
				t.Fatalf("claimed %v, want %s alone", held, first)
			}
			wantLanes(t, newest) // Nothing: the lane is taken.
			old.settle(t, "CompleteJobs", held, first)
			mustSettle(t, newest, wantLanes(t, newest, second)[0], domain.Outcome{}, domain.StatusCompleted)
		})
	}
}

// values are arguments by the names that sqlc gave them.
type values map[string]any

// ordinary are the arguments of a program that works on the queue.
func ordinary() values {
	return values{
		"Queue": domain.DefaultQueue, "Kind": "note", "PartitionKey": "order:1", "Hash": 7, "Draw": rand.Int64(),
		"MaxAttempts": 0, "Delay": time.Duration(0), "RunAt": time.Time{}, "Ring": true,
		"Headers": json.RawMessage("null"), "Payload": json.RawMessage(`{}`),
		"WorkerID": "old", "Lease": lease, "DueFor": time.Duration(0), "Quota": 10, "Batch": 10, "Keys": 10,
		"PartitionBuckets": []int32{7}, "Floors": []time.Time{{}}, "AfterKeys": []string{""},
	}
}

// call runs a statement and returns the rows as the program reads them.
func (p *program) call(t *testing.T, name string, own values) []values {
	t.Helper()
	var statement frozenStatement
	for _, each := range p.Statements {
		if each.Name == name {
			statement = each
		}
	}
	rows, err := p.conn.Query(t.Context(), statement.text(), p.arguments(t, statement, own)...)
	if err != nil {
		t.Fatalf("%s of version %d: %v", name, p.Schema, err)
	}
	defer rows.Close()
	var answered []values
	for rows.Next() {
		row, err := statement.scan(rows)
		if err != nil {
			t.Fatalf("%s of version %d: %v", name, p.Schema, err)
		}
		answered = append(answered, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s of version %d: %v", name, p.Schema, err)
	}
	return answered
}

// arguments are those of a statement in its order, each of the type that the program sends.
func (p *program) arguments(t *testing.T, statement frozenStatement, own values) []any {
	t.Helper()
	given := ordinary()
	maps.Copy(given, own)
	arguments := make([]any, len(statement.Parameters))
	for i, parameter := range statement.Parameters {
		name, _, _ := strings.Cut(parameter, " ")
		argument, known := given[name]
		typed, err := goValue(parameter)
		if err != nil || !known {
			t.Fatalf("%s of version %d has the parameter %q, for which this test has no argument (error %v)", statement.Name, p.Schema, parameter, err)
		}
		arguments[i] = reflect.ValueOf(argument).Convert(typed.Type()).Interface()
	}
	return arguments
}

// scan reads a row; of a statement whose answer no program reads, nothing.
func (s frozenStatement) scan(rows pgx.Rows) (values, error) {
	row, targets := values{}, make([]any, len(s.Results))
	for i, result := range s.Results {
		typed, err := goValue(result)
		if err != nil {
			return nil, err
		}
		targets[i] = typed.Addr().Interface()
	}
	if len(targets) == 0 {
		return row, nil
	}
	err := rows.Scan(targets...)
	for i, result := range s.Results {
		name, _, _ := strings.Cut(result, " ")
		row[name] = reflect.ValueOf(targets[i]).Elem().Interface()
	}
	return row, err
}

// enqueue adds a job and returns its id.
func (p *program) enqueue(t *testing.T, statement string, own values) domain.JobID {
	t.Helper()
	rows := p.call(t, statement, own)
	if len(rows) != 1 {
		t.Fatalf("%s of version %d answers %v", statement, p.Schema, rows)
	}
	return rows[0]["JobID"].(pgtype.UUID).Bytes
}

// hold is a claim of the older program.
type hold struct {
	bucket     int32
	generation int64
}

// claim takes so many due jobs.
func (p *program) claim(t *testing.T, want int) map[domain.JobID]hold {
	t.Helper()
	everywhere := make([]int32, 1024)
	for i := range everywhere {
		everywhere[i] = int32(i)
	}
	held := holds(p.call(t, "ClaimJobs", values{"PartitionBuckets": everywhere, "Floors": make([]time.Time, len(everywhere))}))
	if len(held) != want {
		t.Fatalf("version %d claims %d jobs, want %d", p.Schema, len(held), want)
	}
	return held
}

// claimLanes takes the heads of the free lanes of the ordered queue.
func (p *program) claimLanes(t *testing.T) map[domain.JobID]hold {
	t.Helper()
	p.call(t, "BeginLanes", nil)
	p.call(t, "LockLanes", values{"Queue": "mail"})
	held := holds(p.call(t, "ClaimLanes", values{"Queue": "mail"}))
	p.call(t, "CommitLanes", nil)
	return held
}

func holds(rows []values) map[domain.JobID]hold {
	held := map[domain.JobID]hold{}
	for _, row := range rows {
		held[row["ID"].(pgtype.UUID).Bytes] = hold{row["PartitionBucket"].(int32), row["LeaseGeneration"].(int64)}
	}
	return held
}

// settle settles or renews claims, and returns the rows that tell of it.
func (p *program) settle(t *testing.T, statement string, held map[domain.JobID]hold, ids ...domain.JobID) []values {
	t.Helper()
	set := values{}
	var uuids []pgtype.UUID
	var buckets []int32
	var generations []int64
	for _, id := range ids {
		uuids = append(uuids, pgtype.UUID{Bytes: id, Valid: true})
		buckets = append(buckets, held[id].bucket)
		generations = append(generations, held[id].generation)
	}
	set["IDs"], set["PartitionBuckets"], set["LeaseGenerations"] = uuids, buckets, generations
	set["Delays"], set["Errors"] = make([]time.Duration, len(ids)), make([]string, len(ids))
	return p.call(t, statement, set)
}
