package integration

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

func TestHousekeeping_OneIsElectedAtATime(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queues := [2]*domain.Queue{database.Queue(t), database.Queue(t)}
	elected, err := queues[0].Elect(t.Context(), func(ctx context.Context) {
		second, err := queues[1].Elect(ctx, func(context.Context) { t.Error("a second housekeeper works beside the first") })
		if err != nil || second {
			t.Errorf("the second is elected: %t, %v", second, err)
		}
	})
	if err != nil || !elected {
		t.Fatalf("the first is elected: %t, %v", elected, err)
	}
	if again, err := queues[1].Elect(t.Context(), func(context.Context) {}); err != nil || !again {
		t.Errorf("elected after the first has finished: %t, %v", again, err)
	}
}

// An election costs others nothing, however long the housekeeper takes: its transaction
// holds no snapshot that vacuum would have to wait for.
func TestHousekeeping_ElectionHoldsNoSnapshot(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	_, err := database.Queue(t).Elect(t.Context(), func(context.Context) {
		pinned := pgtest.Value[int](t, database, `
			SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)`)
		if pinned != 0 {
			t.Errorf("%d sessions hold a snapshot during an election", pinned)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestHousekeeping_DeadWorkersAreNotRungFor(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	for _, id := range []string{"alive", "dead", "draining"} {
		join(t, queue, id)
		if err := queue.Arm(t.Context(), id, []string{domain.DefaultQueue}); err != nil {
			t.Fatal(err)
		}
	}
	database.Exec(t, "UPDATE holdfast.workers SET status = id::holdfast.worker_status")
	report, err := queue.KeepHouse(t.Context(), houseRules)
	if err != nil || report.BellsDisarmed != 2 {
		t.Errorf("disarmed %d bells, want 2; error %v", report.BellsDisarmed, err)
	}
	if left := pgtest.Values[string](t, database, "SELECT worker_id FROM holdfast.wake"); len(left) != 1 || left[0] != "alive" {
		t.Errorf("still rung for: %v", left)
	}
}

// Any session may hold any advisory lock for ever.
func TestComesBack_ThoughAnOutsiderHoldsTheHousekeepersLock(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	outsider := database.Conn(t)
	if _, err := outsider.Exec(t.Context(), "SELECT pg_advisory_lock(hashtextextended('holdfast.housekeeping', 0))"); err != nil {
		t.Fatal(err)
	}
	id := enqueue(t, database)
	claimOne(t, database.Queue(t), "dead")
	database.ExpireLease(t, id)
	startWorker(t, database, database.Pool, "w", quick(), holdfast.Handle(func(context.Context, holdfast.Job[note]) error { return nil }))
	endWaits(t, database, 1)
	untilCompleted(t, database, 1)
}

// A table that is locked holds up claims and housekeeping; what is held stays held.
func TestWorker_HungClaimsStarveNeitherRenewalsNorSettlements(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	const jobs = 4
	enqueueNotes(t, database, jobs)
	finish := make(chan struct{})
	run := startWorker(t, database, database.Pool, "w", quick(), holdfast.Handle(func(ctx context.Context, _ holdfast.Job[note]) error {
		select {
		case <-finish:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}))
	pgtest.Eventually(t, patience, "every job is held", func() bool {
		return pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox WHERE status = 'processing'") == jobs
	})
	locker := database.Conn(t)
	for _, sql := range []string{"BEGIN", "LOCK TABLE holdfast.queues, holdfast.idempotency_keys, holdfast.wake IN ACCESS EXCLUSIVE MODE"} {
		if _, err := locker.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	pgtest.Eventually(t, patience, "a claim and a housekeeper hang", func() bool {
		return pgtest.Value[int](t, database, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") == 2
	})
	earliest := func() time.Time {
		return pgtest.Value[time.Time](t, database, "SELECT min(lease_expires_at) FROM holdfast.inbox")
	}
	before := earliest()
	pgtest.Eventually(t, 5*time.Second, "every lease is renewed", func() bool { return earliest().After(before) })
	close(finish)
	untilCompleted(t, database, jobs)
	if _, err := locker.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	run.drain()
}

// A worker's clock may be wrong by any time: leases are the database's.
func TestNeverTakenEarly_WorkerWithAWrongClock(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]time.Duration{"an hour ahead": time.Hour, "an hour behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			id := enqueue(t, database)
			claimOne(t, database.Queue(t), "another")
			const jobs = 50
			enqueueNotes(t, database, jobs)
			config := quick()
			config.Clock = skewedClock{skew: skew}
			var ran runs
			startWorker(t, database, database.Pool, "w", config, holdfast.Handle(func(_ context.Context, job holdfast.Job[note]) error {
				ran.add(job.ID)
				return nil
			}))
			untilCompleted(t, database, jobs)
			ran.wantEvery(t, jobs, 1)
			if job := find(t, database, id); job.Status != domain.StatusProcessing || *job.ClaimedBy != "another" {
				t.Errorf("the job of the other worker, whose lease runs, is %s", job.Status)
			}
		})
	}
}

// skewedClock is a clock that shows another time.
type skewedClock struct {
	skew time.Duration
}

func (c skewedClock) Now() time.Time { return time.Now().Add(c.skew) }

func (c skewedClock) NewTimer(d time.Duration) (fired <-chan time.Time, stop func()) {
	timer := time.NewTimer(d)
	return timer.C, func() { timer.Stop() }
}
