package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

func load(t *testing.T, database *pgtest.Database, queue string) domain.QueueLoad {
	t.Helper()
	loads, err := domain.QueueLoads(t.Context(), database.Pool, queue)
	if err != nil || len(loads) != 1 {
		t.Fatalf("%+v, %v", loads, err)
	}
	return loads[0]
}

func TestSupport_CountsTellEveryStateApart(t *testing.T) {
	t.Parallel()
	database := everyState(t)
	got := load(t, database, domain.DefaultQueue)
	one := domain.Count{Jobs: 1}
	for name, count := range map[string]domain.Count{
		"ready": got.Ready, "scheduled": got.Scheduled, "retrying": got.Retrying, "expired": got.Expired,
		"failed": got.Failed, "dead letter": got.DeadLetter,
	} {
		if count != one {
			t.Errorf("%s: %+v", name, count)
		}
	}
	if got.Processing != (domain.Count{Jobs: 2}) || got.Dead() != (domain.Count{Jobs: 2}) || got.Completed != (domain.Count{}) {
		t.Errorf("%+v", got)
	}
	if got.Arrivals.Jobs != 8 || got.Arrivals.Completed != 1 || got.Arrivals.SpanSeconds != 60 {
		t.Errorf("%+v", got.Arrivals)
	}
	if empty := load(t, database, "nowhere"); empty.OldestAgeSeconds != nil || empty.Ready != (domain.Count{}) || empty.Arrivals.Jobs != 0 {
		t.Errorf("%+v", empty)
	}
}

func TestSupport_CountsStopAtTenThousandAndSaySo(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	fill(t, database, domain.DefaultQueue, false, "tenant:7", 3, 9_997)
	if got := load(t, database, domain.DefaultQueue).Ready; got != (domain.Count{Jobs: 10_000}) {
		t.Errorf("10,000 jobs: %+v", got)
	}
	fill(t, database, domain.DefaultQueue, false, "tenant:8", 2, 0)
	got := load(t, database, domain.DefaultQueue)
	if got.Ready != (domain.Count{Jobs: 10_000, More: true}) || got.Ready.String() != "10000+" {
		t.Errorf("10,002 jobs: %+v", got.Ready)
	}
	// What came is a sample of the newest.
	if got.Arrivals.Jobs != 2_000 || got.Arrivals.SpanSeconds <= 0 || got.Arrivals.SpanSeconds > 59 {
		t.Errorf("%+v", got.Arrivals)
	}
	database.Exec(t, "UPDATE holdfast.inbox SET available_at = now() + interval '1 hour', attempts = (partition_key = 'tenant:7')::integer")
	got = load(t, database, domain.DefaultQueue)
	if got.Ready.Jobs != 0 || got.OldestAgeSeconds != nil || got.Retrying != (domain.Count{Jobs: 3}) || got.Scheduled != (domain.Count{Jobs: 9_999}) {
		t.Errorf("all for later: %+v", got)
	}
}

func TestSupport_CountsCoverLanes(t *testing.T) {
	t.Parallel()
	database, queue := newOrdered(t)
	for range 3 {
		enqueueIn(t, database, "order:7")
	}
	enqueueIn(t, database, "order:8", domain.In(time.Hour))
	wantLanesAre(t, queue, 1)
	database.Exec(t, "UPDATE holdfast.inbox SET available_at = now() - interval '10 minutes' WHERE seq = (SELECT max(seq) FROM holdfast.inbox WHERE partition_key = 'order:7')")
	got := load(t, database, "mail")
	if got.Ready.Jobs != 2 || got.Scheduled.Jobs != 1 || got.Processing.Jobs != 1 || got.OldestAgeSeconds == nil || *got.OldestAgeSeconds < 600 || *got.OldestAgeSeconds > 700 {
		t.Errorf("%+v", got)
	}
	fill(t, database, "mail", true, "tenant:7", 4_100, 0)
	if got := load(t, database, "mail").Ready; !got.More || got.Jobs < 3_998 || got.Jobs > 4_001 {
		t.Errorf("4,102 ready jobs in lanes: %+v", got)
	}
}

// wantLanesAre claims from the lanes of the ordered queue and expects so many jobs.
func wantLanesAre(t *testing.T, queue *domain.Queue, jobs int) {
	t.Helper()
	if claimed := claimLanes(t, queue, laneRequest("mail")); len(claimed) != jobs {
		t.Fatalf("claimed %d jobs, want %d", len(claimed), jobs)
	}
}

func TestSupport_KeptJobsAreCountedByQueue(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	keep := domain.RetentionKeep
	if _, err := domain.SetQueue(t.Context(), database.Pool, domain.DefaultQueue, domain.QueueChange{RetentionMode: &keep}); err != nil {
		t.Fatal(err)
	}
	enqueue(t, database)
	queue := database.Queue(t)
	mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{}, domain.StatusCompleted)
	if got := load(t, database, domain.DefaultQueue); got.Completed.Jobs != 1 || got.Arrivals.Completed != 1 {
		t.Errorf("%+v", got)
	}
}

func TestSupport_WorkInFlightIsCountedByWorkerAndQueue(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	if none, err := domain.CountInFlight(t.Context(), database.Pool); err != nil || len(none.Shares) != 0 || none.Claims.Jobs != 0 {
		t.Errorf("%+v, %v", none, err)
	}
	queue := database.Queue(t)
	enqueueNotes(t, database, 5)
	late := claim(t, queue, "w1", 2)[0]
	claim(t, queue, "w2", 3)
	database.ExpireLease(t, late.ID)
	got, err := domain.CountInFlight(t.Context(), database.Pool)
	if err != nil || got.Claims != (domain.Count{Jobs: 5}) || got.OfWorker("w1").Jobs != 2 || got.OfWorker("w2").Jobs != 3 || got.OfWorker("w3").Jobs != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	if share := got.Shares[1]; share.WorkerID != "w1" || share.Queue != domain.DefaultQueue || share.Expired != 1 {
		t.Errorf("%+v", got.Shares)
	}
}

// A job that nobody tried, and one that succeeds at once, costs the indexes of the unlucky
// nothing: neither gets its first page.
func TestSupport_LuckyJobsLeaveTheIndexesOfTheUnluckyEmpty(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	sizes := func() []int64 {
		return pgtest.Values[int64](t, database, `SELECT pg_relation_size('holdfast.' || name) FROM unnest(ARRAY['inbox_retrying_idx', 'inbox_dead_newest_idx']) AS name`)
	}
	empty := fmt.Sprint(sizes())
	queue := database.Queue(t)
	enqueueNotes(t, database, 20)
	for _, job := range claim(t, queue, "w1", 20) {
		mustSettle(t, queue, job, domain.Outcome{}, domain.StatusCompleted)
	}
	if got := fmt.Sprint(sizes()); got != empty {
		t.Errorf("the indexes have %s bytes, and had %s", got, empty)
	}
	enqueue(t, database)
	mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{Verdict: domain.Retry, Delay: time.Hour}, domain.StatusPending)
	if got := fmt.Sprint(sizes()); got == empty {
		t.Error("a retry leaves no entry")
	}
}

func TestSupport_ReplicaSaysHowOldItsAnswerIs(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	lag, err := domain.ReadLag(t.Context(), database.Pool)
	if err != nil || lag.Standby || lag.String() != "a server that is no replica: it accepts writes" {
		t.Errorf("%+v, %v", lag, err)
	}
}
