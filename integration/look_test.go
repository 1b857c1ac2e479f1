package integration

import (
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

const horizon = time.Hour

// look looks around as the owner of the lower half of the buckets.
func look(t *testing.T, queue *domain.Queue, lanes bool) domain.Outlook {
	t.Helper()
	buckets := everyBucket()
	outlook, err := queue.Look(t.Context(), domain.LookRequest{
		Queue: domain.DefaultQueue, Own: buckets[:512], Others: buckets[512:], Lanes: lanes, DueFor: 2 * time.Second, Horizon: horizon,
	})
	if err != nil {
		t.Fatal(err)
	}
	return outlook
}

// keyOfHalf returns a partition key of the lower half of the buckets, or the upper.
func keyOfHalf(t *testing.T, lower bool) string {
	t.Helper()
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		if (domain.BucketOf(key, 1024) < 512) == lower {
			return key
		}
	}
	t.Fatal("no key is in this half")
	return ""
}

func TestLook_TellsWhenTheNextJobIsDue(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	if seen := look(t, queue, false); seen != (domain.Outlook{NextDue: horizon}) {
		t.Errorf("with nothing waiting: %+v, want the horizon", seen)
	}
	own := domain.Key(keyOfHalf(t, true))
	enqueue(t, database, domain.Key(keyOfHalf(t, false)), domain.In(time.Minute))
	enqueue(t, database, own, domain.In(2*time.Hour))
	if seen := look(t, queue, false); seen != (domain.Outlook{NextDue: horizon}) {
		t.Errorf("with nothing of its own due within the horizon: %+v, want the horizon", seen)
	}
	enqueue(t, database, own, domain.In(10*time.Minute))
	if seen := look(t, queue, false); seen.NextDue > 10*time.Minute || seen.NextDue < 9*time.Minute {
		t.Errorf("the next job is due in %s, want 10 minutes", seen.NextDue)
	}
	enqueue(t, database, own)
	if seen := look(t, queue, false); seen != (domain.Outlook{NextDue: 0}) {
		t.Errorf("with a job due: %+v, want no wait", seen)
	}
}

func TestLook_SeesStraysAndMisfitsOnceTheyHaveWaited(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	enqueue(t, database, domain.Key(keyOfHalf(t, false)))
	if seen := look(t, queue, false); seen.Strays {
		t.Error("a job that has just been enqueued is a stray")
	}
	database.Exec(t, "UPDATE holdfast.inbox SET available_at = now() - interval '3 seconds'")
	if seen := look(t, queue, false); seen != (domain.Outlook{NextDue: horizon, Strays: true}) {
		t.Errorf("with a stray: %+v", seen)
	}
	if seen := look(t, queue, true); seen != (domain.Outlook{NextDue: horizon, Misfits: true}) {
		t.Errorf("with a job without a lane in an ordered queue: %+v", seen)
	}
	database.Exec(t, "UPDATE holdfast.inbox SET ordered = true")
	if seen := look(t, queue, false); seen != (domain.Outlook{NextDue: horizon, Misfits: true}) {
		t.Errorf("with a job of a lane in a queue that is not ordered: %+v", seen)
	}
	if seen := look(t, queue, true); seen != (domain.Outlook{NextDue: horizon, Strays: true}) {
		t.Errorf("with a stray in a lane: %+v", seen)
	}
}

func TestLook_SeesNothingOfAPausedQueue(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	enqueue(t, database, domain.Key(keyOfHalf(t, true)))
	database.Exec(t, "UPDATE holdfast.queues SET paused = true")
	if seen := look(t, database.Queue(t), false); seen != (domain.Outlook{NextDue: horizon}) {
		t.Errorf("of a paused queue: %+v, want the horizon", seen)
	}
}
