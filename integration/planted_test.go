package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// Somebody is busy with the job that has been due for longest: a claim takes the others, and
// does not wait.
func TestClaim_LockedJobHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	ids := enqueueNotes(t, database, 2)
	tx := begin(t, database)
	if _, err := tx.Exec(t.Context(), "SELECT FROM holdfast.inbox WHERE id = $1 FOR UPDATE", ids[0].String()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	jobs, err := database.Queue(t).Claim(ctx, domain.ClaimRequest{
		WorkerID: "w1", Queue: domain.DefaultQueue, Buckets: everyBucket(), Quota: 2, Batch: 2, Lease: lease,
	})
	if err != nil || len(jobs) != 1 || jobs[0].ID != ids[1] {
		t.Fatalf("claimed %v (error %v), want the job that nobody has locked", jobs, err)
	}
}

// The server's clock may be set back between two enqueues; seq is not.
func TestInOrder_SeqDecidesThoughTheClockWentBack(t *testing.T) {
	t.Parallel()
	database, queue := newOrdered(t)
	first, second := enqueueIn(t, database, "a"), enqueueIn(t, database, "a")
	database.Exec(t, "UPDATE holdfast.inbox SET created_at = created_at - interval '1 hour', available_at = available_at - interval '1 hour' WHERE id = $1", second.String())
	mustSettle(t, queue, wantLanes(t, queue, first)[0], domain.Outcome{}, domain.StatusCompleted)
	wantLanes(t, queue, second)
}

// A duplicate waits for the transaction that is just taking its key, and then answers with the
// job of that one, or makes its own when there came to be none.
func TestOncePerKey_DuplicateWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	enqueues := map[string]func(ctx context.Context, db domain.DBTX) (domain.EnqueueResult, error){
		"one": func(ctx context.Context, db domain.DBTX) (domain.EnqueueResult, error) {
			return domain.Enqueue(ctx, db, note{}, domain.Once("receipt:9182"))
		},
		"a set": func(ctx context.Context, db domain.DBTX) (domain.EnqueueResult, error) {
			results, err := domain.EnqueueMany(ctx, db, domain.NewJob{Args: note{}, Options: []domain.EnqueueOption{domain.Once("receipt:9182")}})
			return append(results, domain.EnqueueResult{})[0], err
		},
	}
	for name, enqueue := range enqueues {
		for _, commits := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, the first commits: %v", name, commits), func(t *testing.T) {
				t.Parallel()
				database := pgtest.New(t)
				tx := begin(t, database)
				first, err := enqueue(t.Context(), tx)
				if err != nil {
					t.Fatal(err)
				}
				var second domain.EnqueueResult
				answered := make(chan error, 1)
				go func() {
					var err error
					second, err = enqueue(t.Context(), database.Pool)
					answered <- err
				}()
				pgtest.Eventually(t, patience, "the duplicate waits", func() bool {
					return pgtest.Value[int](t, database, `SELECT count(*) FROM pg_stat_activity
						WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%name: Enqueue%'`) == 1
				})
				if commits {
					err = tx.Commit(t.Context())
				} else {
					err = tx.Rollback(t.Context())
				}
				if err := errors.Join(err, <-answered); err != nil {
					t.Fatal(err)
				}
				ids := pgtest.Values[string](t, database, "SELECT id::text FROM holdfast.inbox")
				if len(ids) != 1 || ids[0] != second.ID.String() || second.Duplicate != commits || (second.ID == first.ID) != commits {
					t.Fatalf("jobs %v exist; the first was told %+v, the second %+v", ids, first, second)
				}
			})
		}
	}
}

// The commit of an enqueue can get no reply. A producer that gave a key sends it again, and
// learns which job it made.
func TestOncePerKey_EnqueueWhoseReplyWasLostIsSentAgain(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	pool, wire := wired(t, database)
	lost := wire.loseReply("receipt:9182")
	if result, err := domain.Enqueue(t.Context(), pool, note{}, domain.Once("receipt:9182")); err == nil {
		t.Fatalf("the reply was lost, and the producer was told %+v", result)
	}
	waitFor(t, lost, "the reply is lost")
	again, err := domain.Enqueue(t.Context(), pool, note{}, domain.Once("receipt:9182"))
	if err != nil {
		t.Fatal(err)
	}
	ids := pgtest.Values[string](t, database, "SELECT id::text FROM holdfast.inbox")
	if len(ids) != 1 || ids[0] != again.ID.String() || !again.Duplicate {
		t.Fatalf("jobs %v exist, and the second enqueue was told %+v", ids, again)
	}
}
