package integration

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

func TestComesBack_EndedLeaseReturnsTheJobToAnotherWorker(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	id := enqueue(t, database)
	lost := claimOne(t, queue, "w1")
	database.ExpireLease(t, id)
	reclaimed := mustReclaim(t, queue, 1)[0]
	if reclaimed.Claim != lost.Claim || reclaimed.Status != domain.StatusPending || reclaimed.Attempts != 1 || reclaimed.Kind != "note" {
		t.Fatalf("reclaimed %+v, want the claim %+v", reclaimed, lost.Claim)
	}
	if wait := pgtest.Value[time.Duration](t, database, "SELECT available_at - now() FROM holdfast.inbox"); wait < time.Second || wait > 2500*time.Millisecond {
		t.Fatalf("after its first attempt the job waits %s, want 2 s give or take a fifth", wait)
	}
	database.EndWait(t, id)
	if won := claimOne(t, queue, "w2"); won.ID != id || won.Attempt != 2 || won.Generation <= lost.Generation {
		t.Fatalf("the next claim is %+v after %+v", won, lost)
	}
}

// Nothing but the lease's own deadline, by the database's clock, ends it: not a heartbeat
// that stays away, not a worker that is held for dead or was never registered.
func TestNeverTakenEarly_RunningLeaseIsNotReclaimed(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	join(t, queue, "w1")
	enqueueNotes(t, database, 2)
	held := append(claim(t, queue, "w1", 1), claim(t, queue, "never registered", 1)...)
	database.Exec(t, "UPDATE holdfast.workers SET last_seen_at = now() - interval '1 hour'")
	report, err := queue.KeepHouse(t.Context(), houseRules)
	if err != nil || len(report.WorkersDied) != 1 {
		t.Fatalf("keeping house reported %+v, error %v", report, err)
	}
	mustReclaim(t, queue, 0)
	for _, job := range held {
		mustSettle(t, queue, job, domain.Outcome{}, domain.StatusCompleted)
	}
}

func TestAttemptsAreBounded_LeaseThatEndsAtTheLastAttemptIsDeadLettered(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	id := enqueue(t, database, domain.MaxAttempts(2))
	mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{Verdict: domain.Retry, Error: "smtp 421"}, domain.StatusPending)
	claimOne(t, queue, "w1")
	database.ExpireLease(t, id)
	if reclaimed := mustReclaim(t, queue, 1)[0]; reclaimed.Status != domain.StatusDeadLetter {
		t.Fatalf("the job became %s", reclaimed.Status)
	}
	job := find(t, database, id)
	if job.ClaimedBy != nil || job.ClaimedAt != nil || job.LeaseExpiresAt != nil || job.FinishedAt == nil || *job.FinishedBy != "w1" {
		t.Fatalf("the dead-lettered job still looks claimed: %+v", job)
	}
	if job.LastError == nil || *job.LastError != "the lease of worker w1 ended at the last attempt; the error before: smtp 421" {
		t.Fatalf("last_error is %v, want it to name the worker and the error before", job.LastError)
	}
}

// A power of two of this many attempts is no integer any more; it must not end recovery.
func TestComesBack_ManyAttemptsDoNotBreakTheBackoff(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	for _, attempts := range []int{30, 31, 50, 1000, 5000} {
		id := enqueue(t, database, domain.MaxAttempts(1_000_000))
		claimOne(t, queue, "w1")
		database.Exec(t, "UPDATE holdfast.inbox SET attempts = $1 WHERE id = $2", attempts, id.String())
		database.ExpireLease(t, id)
		mustReclaim(t, queue, 1)
		if wait := pgtest.Value[time.Duration](t, database, "SELECT available_at - now() FROM holdfast.inbox WHERE id = $1", id.String()); wait < 48*time.Minute-time.Second || wait > 72*time.Minute {
			t.Errorf("after %d attempts the job waits %s, want an hour give or take a fifth", attempts, wait)
		}
	}
}

// More ended leases than a batch holds, of several workers, with two housekeepers at once.
func TestComesBack_HousekeepersAtOnceReclaimEachJobOnce(t *testing.T) {
	t.Parallel()
	const jobs = 2500
	database := pgtest.New(t)
	queue := database.Queue(t)
	enqueueNotes(t, database, jobs)
	for _, worker := range []string{"w1", "w2", "w3"} {
		claim(t, queue, worker, jobs/3)
	}
	claim(t, queue, "w4", jobs)
	kept := claim(t, queue, "w5", 1)
	if len(kept) != 0 {
		t.Fatal("not every job was claimed")
	}
	database.Exec(t, "UPDATE holdfast.inbox SET lease_expires_at = now() - interval '1 second'")
	var reclaimed atomic.Int64
	atOnce(2, func(int) {
		batch, _, err := queue.Reclaim(t.Context(), 0)
		if err != nil {
			t.Error(err)
		}
		reclaimed.Add(int64(len(batch)))
	})
	// A row that one housekeeper had locked was skipped by the other, never taken twice.
	if reclaimed.Load() != jobs {
		t.Fatalf("%d reclaims of %d jobs", reclaimed.Load(), jobs)
	}
	if left := pgtest.Value[int64](t, database, "SELECT count(*) FROM holdfast.inbox WHERE status <> 'pending'"); left != 0 {
		t.Fatalf("%d jobs were left behind", left)
	}
}

// A walk may begin behind the claims that are known to be over. It says where the next one may.
func TestComesBack_ReclaimLooksOnlyAtClaimsAfterTheOneGiven(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	var claims [3]domain.ClaimedJob
	for i := range claims {
		enqueue(t, database)
		claims[i] = claimOne(t, queue, "w1")
	}
	settled, oldest, newest := claims[0], claims[1], claims[2]
	mustSettle(t, queue, settled, domain.Outcome{}, domain.StatusCompleted)
	for _, step := range []struct {
		after, over int64
		want        []domain.JobID
	}{
		{0, oldest.Generation - 1, nil},
		{newest.Generation, newest.Generation, nil}, // None is in flight after it.
		{oldest.Generation, newest.Generation - 1, []domain.JobID{newest.ID}},
		{settled.Generation, oldest.Generation - 1, []domain.JobID{oldest.ID}},
	} {
		for _, id := range step.want {
			database.ExpireLease(t, id)
		}
		reclaimed, over, err := queue.Reclaim(t.Context(), step.after)
		if err != nil || over != step.over || len(reclaimed) != len(step.want) || len(reclaimed) == 1 && reclaimed[0].Claim.ID != step.want[0] {
			t.Errorf("after %d: reclaimed %v, over %d, error %v; want %v, %d", step.after, reclaimed, over, err, step.want, step.over)
		}
	}
}
