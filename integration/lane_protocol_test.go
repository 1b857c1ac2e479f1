package integration

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// A claim is held up in LockLanes, before it has its locks. Meanwhile the first job of its
// lane is committed, with the lower seq, and claimed by another worker. The claim must choose
// by what it sees after it got the locks, whatever isolation the role begins with.
func TestInOrder_ChoiceSeesWhatWasCommittedBeforeTheLocks(t *testing.T) {
	t.Parallel()
	for _, isolation := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			database, queue := newOrdered(t)
			setForRole(t, database, "default_transaction_isolation", "'"+isolation+"'")
			gate := holdAt(t, database, "pg_try_advisory_xact_lock(integer, integer)", "boolean", "pg_catalog.pg_try_advisory_xact_lock($1, $2)")
			late := begin(t, database)
			first, err := domain.Enqueue(t.Context(), late, note{}, domain.OnQueue("mail"), domain.Key("a"))
			if err != nil {
				t.Fatal(err)
			}
			enqueueIn(t, database, "a")
			claimed := claimAtGate(t, database, queue)
			if err := late.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			database.Exec(t, `UPDATE holdfast.inbox
				SET status = 'processing', claimed_by = 'w2', claimed_at = clock_timestamp(), lease_expires_at = clock_timestamp() + interval '1 minute'
				WHERE id = $1`, first.ID.String())
			if err := gate.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			if jobs := <-claimed; len(jobs) != 0 {
				t.Fatalf("claimed %v beside the first job of the lane", jobs)
			}
		})
	}
}

// A claim is held up after it chose the head of a lane, before it locks it. Whatever becomes
// of the job meanwhile, such as by an operator, the claim takes it only if it is still due.
func TestInOrder_HeadThatChangesMeanwhileIsLeftAlone(t *testing.T) {
	t.Parallel()
	changes := map[string]string{
		"failed":  "UPDATE holdfast.inbox SET status = 'failed', finished_at = clock_timestamp() WHERE id = $1",
		"put off": "UPDATE holdfast.inbox SET available_at = clock_timestamp() + interval '1 hour' WHERE id = $1",
		"deleted": "DELETE FROM holdfast.inbox WHERE id = $1",
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database, queue := newOrdered(t)
			head := enqueueIn(t, database, "a")
			enqueueIn(t, database, "a")
			gate := holdAt(t, database, "now()", "timestamptz", "pg_catalog.now()")
			claimed := claimAtGate(t, database, queue)
			database.Exec(t, change, head.String())
			if err := gate.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			if jobs := <-claimed; len(jobs) != 0 {
				t.Fatalf("claimed %v though the head had changed", jobs)
			}
		})
	}
}

// holdAt stops every statement of the role that calls a function of Postgres, until the
// transaction ends that it returns: a function in front of that one waits for it. The test's own
// statements must not call it either.
func holdAt(t *testing.T, database *pgtest.Database, signature, result, call string) pgx.Tx {
	t.Helper()
	database.Exec(t, "CREATE SCHEMA gate")
	database.Exec(t, "CREATE FUNCTION gate."+signature+" RETURNS "+result+` LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM pg_advisory_xact_lock_shared(1, 1);
			RETURN `+call+`;
		END $$`)
	setForRole(t, database, "search_path", "gate, pg_catalog")
	gate := begin(t, database)
	if _, err := gate.Exec(t.Context(), "SELECT pg_advisory_xact_lock(1, 1)"); err != nil {
		t.Fatal(err)
	}
	return gate
}

// claimAtGate claims lanes, returns as soon as the claim waits, and sends what came of it.
func claimAtGate(t *testing.T, database *pgtest.Database, queue *domain.Queue) <-chan []domain.ClaimedJob {
	t.Helper()
	claimed := make(chan []domain.ClaimedJob, 1)
	go func() {
		jobs, err := queue.Claim(t.Context(), laneRequest("mail"))
		if err != nil {
			t.Error(err)
		}
		claimed <- jobs
	}()
	pgtest.Eventually(t, 10*time.Second, "the claim waits at the gate", func() bool {
		return pgtest.Value[int64](t, database, `SELECT count(*) FROM pg_locks
			WHERE locktype = 'advisory' AND NOT granted
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`) == 1
	})
	return claimed
}

// setForRole gives sessions of the test's role that are opened later another default.
func setForRole(t *testing.T, database *pgtest.Database, name, value string) {
	t.Helper()
	database.Exec(t, "ALTER ROLE CURRENT_USER IN DATABASE "+database.Config().Database+" SET "+name+" = "+value)
}

// An error inside the transaction must neither claim anything nor leave a broken connection
// behind. An index that is in the way stands for what cannot happen otherwise.
func TestInOrder_ErrorInsideTheTransactionLeavesNothing(t *testing.T) {
	t.Parallel()
	database, queue := newOrdered(t)
	first, second := enqueueIn(t, database, "a"), enqueueIn(t, database, "b")
	database.Exec(t, "CREATE UNIQUE INDEX broken ON holdfast.inbox (queue) WHERE status = 'processing'")
	if jobs, err := queue.Claim(t.Context(), laneRequest("mail")); err == nil || len(jobs) != 0 {
		t.Fatalf("claimed %v, error %v", jobs, err)
	}
	database.Exec(t, "DROP INDEX holdfast.broken")
	wantLanes(t, queue, first, second)
	if open := pgtest.Value[int64](t, database, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'"); open != 0 {
		t.Fatalf("%d connections were left in a transaction", open)
	}
}
