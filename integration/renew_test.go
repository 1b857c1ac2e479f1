package integration

import (
	"testing"

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
