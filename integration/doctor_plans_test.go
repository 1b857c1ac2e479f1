package integration

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// mostBuffers is how many shared buffers a statement of the doctor may touch, whatever the size
// of the inbox and whatever the planner was told of it.
const mostBuffers = 5_000

// The doctor is asked when the database is slow, so it must not be what makes it slow. The
// backlog has more rows of each kind than any of the statements looks at.
func TestDoctor_StatementsReadLittleOfALargeInbox(t *testing.T) {
	t.Parallel()
	backlog := newPlanBacklog(t)
	backlog.fill(t, 20_000)
	backlog.database.Exec(t, `
		WITH dead AS (
			INSERT INTO holdfast.inbox (id, partition_bucket, queue, kind, partition_key, status, payload, finished_at, idempotency_key)
			SELECT holdfast.new_job_id(7), 7, 'default', 'plan', 'key', 'dead_letter', '{}', now(), 'dead ' || i
			FROM generate_series(1, 5000) AS i
			RETURNING queue, idempotency_key, id
		)
		INSERT INTO holdfast.idempotency_keys (queue, key, job_id, expires_at)
		SELECT dead.queue, dead.idempotency_key, dead.id, now() + interval '7 days'
		FROM dead`)
	// The jobs that are due, so that the search for one goes through all buckets and lanes.
	backlog.database.Exec(t, "UPDATE holdfast.inbox SET available_at = now() + interval '1 hour' WHERE status = 'pending'")
	texts, err := generatedQueries()
	if err != nil {
		t.Fatal(err)
	}
	for _, statistics := range planStatistics {
		t.Run("statistics "+statistics.name, func(t *testing.T) {
			tx := statistics.pretend(t, backlog.conn)
			for name, args := range map[string][]any{
				"ListUnservedQueues":      {100},
				"FindDueJob":              {"default"},
				"ListOrphanBuckets":       {100},
				"CountOverdueLeases":      {time.Minute},
				"CountOverdueCompletions": {time.Minute},
				"CountDeadKeys":           {100},
				"GetInboxCondition":       {},
				"FindLiveWorker":          {"", ""},
				"ListHorizonHolders":      {time.Minute, 1, 10},
			} {
				if touched := buffersOf(t, tx, texts[name], args...); touched > mostBuffers {
					t.Errorf("%s touches %d buffers", name, touched)
				} else {
					t.Logf("%s touches %d buffers", name, touched)
				}
			}
		})
	}
}

// buffersOf runs a statement and returns how many shared buffers it touched.
func buffersOf(t *testing.T, tx pgx.Tx, sql string, args ...any) int {
	t.Helper()
	var document []byte
	arguments := append([]any{pgx.QueryExecModeDescribeExec}, args...)
	if err := tx.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+sql, arguments...).Scan(&document); err != nil {
		t.Fatalf("%v: %s", err, sql)
	}
	var answer []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal(document, &answer); err != nil || len(answer) != 1 {
		t.Fatal(fmt.Errorf("read the plan: %w", err))
	}
	return answer[0].Plan.Hit + answer[0].Plan.Read
}
