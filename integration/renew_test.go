package integration

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

func TestNeverTakenEarly_RenewalMovesTheDeadline(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	enqueue(t, database)
	job := claimOne(t, queue, "w1")
	database.Exec(t, "UPDATE holdfast.inbox SET lease_expires_at = now() + interval '5 seconds'")
	held, err := queue.Renew(t.Context(), "w1", lease, []domain.Claim{job.Claim})
	if err != nil || len(held) != 1 || held[0] != job.Claim {
		t.Fatalf("renewed %v, error %v", held, err)
	}
	if !pgtest.Value[bool](t, database, "SELECT lease_expires_at > now() + interval '80 seconds' FROM holdfast.inbox") {
		t.Fatal("the deadline was not moved")
	}
	mustReclaim(t, queue, 0)
}

func TestFenced_OnlyTheCurrentClaimIsRenewed(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	enqueueNotes(t, database, 5)
	jobs := claim(t, queue, "w1", 5)
	if len(jobs) != 5 {
		t.Fatalf("claimed %d jobs", len(jobs))
	}
	database.ExpireLease(t, jobs[4].ID)
	claims := []domain.Claim{jobs[0].Claim, jobs[1].Claim, jobs[2].Claim, jobs[3].Claim, jobs[4].Claim}
	claims[1].Generation--
	claims[2].Bucket = (claims[2].Bucket + 1) % 1024
	mustSettle(t, queue, jobs[3], domain.Outcome{}, domain.StatusCompleted)
	held, err := queue.Renew(t.Context(), "w1", lease, claims)
	if err != nil || len(held) != 1 || held[0] != jobs[0].Claim {
		t.Fatalf("renewed %v (error %v), want only %s: the others have a wrong generation, a wrong bucket, are settled, or had ended", held, err, jobs[0].ID)
	}
	if held, err := queue.Renew(t.Context(), "w2", lease, claims); err != nil || len(held) != 0 {
		t.Fatalf("another worker renewed %v (error %v)", held, err)
	}
}

// A renewal writes no index: it is a heap-only update, because a tenth of the leases at a
// time finds room on its pages. Not parallel: on a busy machine two turns become one, and a
// fifth does not.
func TestRenew_LeasesOfLongJobsAreHeapOnlyUpdates(t *testing.T) {
	database := pgtest.New(t)
	const jobs = 1000
	enqueueNotes(t, database, jobs)
	config := quick()
	config.Concurrency, config.ClaimBatch = jobs, jobs
	config.RenewEvery = 3 * time.Second // On a busy machine two turns of less would become one.
	finish := make(chan struct{})
	startWorker(t, database, database.Pool, "w", config, holdfast.Handle(func(ctx context.Context, _ holdfast.Job[note]) error {
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
	updates := func(sort string) int {
		return pgtest.Value[int](t, database, "SELECT coalesce(pg_stat_get_tuples_"+sort+"('holdfast.inbox'::regclass), 0)")
	}
	// A session reports what it did about a second later. The claims are no heap-only updates.
	pgtest.Eventually(t, patience, "the claims are counted", func() bool { return updates("updated")-updates("hot_updated") >= jobs })
	all, hot := updates("updated"), updates("hot_updated")
	pgtest.Eventually(t, patience, "each lease has been renewed twice", func() bool { return updates("updated") >= all+2*jobs })
	ratio := float64(updates("hot_updated")-hot) / float64(updates("updated")-all)
	t.Logf("%.1f %% of %d renewals were heap-only", 100*ratio, updates("updated")-all)
	if ratio < 0.9 {
		t.Errorf("%.1f %% of the renewals were heap-only, want 90", 100*ratio)
	}
	close(finish)
	untilCompleted(t, database, jobs)
}
