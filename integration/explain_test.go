package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/app/support"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
	"github.com/holdfast-pg/holdfast/worker"
)

// explained checks for which reasons a job does not run, and returns them.
func explained(t *testing.T, database *pgtest.Database, id domain.JobID, want ...support.Code) []support.Reason {
	t.Helper()
	found, err := support.Explain(t.Context(), database.Pool, id)
	if err != nil {
		t.Fatal(err)
	}
	var codes []support.Code
	for _, reason := range found.Reasons {
		codes = append(codes, reason.Code)
		if reason.Text == "" || reason.Do == "" {
			t.Errorf("%s says %q and to do %q", reason.Code, reason.Text, reason.Do)
		}
	}
	if found.Job != id || !slices.Equal(codes, want) {
		t.Fatalf("job %s is explained by %v, want %v: %+v", id, codes, want, found)
	}
	return found.Reasons
}

// wantSaid checks what a reason says and what it says to do.
func wantSaid(t *testing.T, reason support.Reason, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(reason.Text+"; "+reason.Do, word) {
			t.Errorf("%s lacks %q:\n%s\n%s", reason.Code, word, reason.Text, reason.Do)
		}
	}
}

func TestExplain_JobThatIsNotThereIsNotFound(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	_, err := support.Explain(t.Context(), database.Pool, domain.NewJobID(time.Now(), 7))
	wantError(t, err, domain.ErrNotFound)
}

func TestExplain_JobThatIsDoneTellsWhenAndByWhom(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	id := completeOne(t, database, database.Queue(t))
	wantSaid(t, explained(t, database, id, support.Completed)[0], "completed at 20", "by w", "at attempt 1 of 5", "and archived")
	database.Exec(t, "UPDATE holdfast.queues SET retention_mode = 'keep'")
	kept := completeOne(t, database, database.Queue(t))
	if text := explained(t, database, kept, support.Completed)[0].Text; strings.Contains(text, "archived") {
		t.Error(text)
	}
}

func TestExplain_DeadJobTellsItsErrorAndHowToRedriveIt(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	failed := enqueue(t, database)
	mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{Verdict: domain.Fail, Error: "no such address"}, domain.StatusFailed)
	wantSaid(t, explained(t, database, failed, support.Failed)[0],
		"by w1, at attempt 1 of 5", `the last error is "no such address"`, "holdfast jobs redrive "+failed.String())
	spent := enqueue(t, database, domain.MaxAttempts(1))
	mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{Verdict: domain.Retry, Error: "smtp 421\n" + strings.Repeat("x", 500)}, domain.StatusDeadLetter)
	wantSaid(t, explained(t, database, spent, support.DeadLetter)[0],
		"its attempts are spent, 1 of 1", `the last error is "smtp 421 xxx`, `xx" …`, "holdfast jobs redrive "+spent.String())
}

func TestExplain_JobThatRunsTellsHowItsHolderStands(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	id := enqueue(t, database)
	claimOne(t, queue, "w1")

	reasons := explained(t, database, id, support.Processing, support.HolderUnknown)
	wantSaid(t, reasons[0], "attempt 1 of 5, claimed by w1", " ago, its lease lasts until 20", "for 1m", "holdfast workers show w1")
	wantSaid(t, reasons[1], "the registry does not know w1", "wait until the lease ends, in 1m", "holdfast jobs release "+id.String())

	join(t, queue, "w1")
	wantSaid(t, explained(t, database, id, support.Processing, support.HolderAlive)[1], "w1 is alive, last seen")

	seen := func(ago string) {
		t.Helper()
		database.Exec(t, "UPDATE holdfast.workers SET last_seen_at = now() - $1::text::interval", ago)
	}
	seen("16 seconds")
	wantSaid(t, explained(t, database, id, support.Processing, support.HolderLate)[1], "w1 has missed heartbeats, last seen 16", "wait until the lease ends")
	seen("1 second")
	wantError(t, domain.Drain(t.Context(), database.Pool, "w1"), nil)
	wantSaid(t, explained(t, database, id, support.Processing, support.HolderDraining)[1], "w1 is draining")
	seen("31 seconds")
	if report, err := queue.KeepHouse(t.Context(), houseRules); err != nil || len(report.WorkersDied) != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	wantSaid(t, explained(t, database, id, support.Processing, support.HolderDead)[1], "w1 is dead, last seen 31", "wait until the lease ends")
}

func TestExplain_JobPastItsLeaseTellsWhetherAnybodyKeepsHouse(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	id := enqueue(t, database)
	claimOne(t, queue, "w1")
	ended := func(ago string) {
		t.Helper()
		database.Exec(t, "UPDATE holdfast.inbox SET lease_expires_at = now() - $1::text::interval", ago)
	}
	ended("5 seconds")
	wantSaid(t, explained(t, database, id, support.Processing, support.HolderUnknown, support.NobodyKeepsHouse)[2],
		"its lease ended 5", "no worker is alive to take it back", "start a worker, of any queue")
	join(t, queue, "w2")
	wantSaid(t, explained(t, database, id, support.Processing, support.HolderUnknown, support.LeaseEnded)[2],
		"its lease ended 5", "takes it back, within 33s")
	ended("61 seconds")
	wantSaid(t, explained(t, database, id, support.Processing, support.HolderUnknown, support.NobodyKeepsHouse)[2],
		"its lease ended 1m1s ago, more than 2 intervals of housekeeping (30s), and 1 live worker did not", "cannot reclaim")
	// It goes by what the worker says of its housekeeping.
	database.Exec(t, `UPDATE holdfast.workers SET metadata = '{"housekeeping_seconds": 60}'`)
	wantSaid(t, explained(t, database, id, support.Processing, support.HolderUnknown, support.LeaseEnded)[2], "within 1m6s")
}

func TestExplain_PausedQueue(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	join(t, database.Queue(t), "w1")
	id := enqueue(t, database)
	wantError(t, domain.PauseQueue(t.Context(), database.Pool, domain.DefaultQueue), nil)
	wantSaid(t, explained(t, database, id, support.QueuePaused)[0], "queue default is paused", "holdfast queues resume default")
}

func TestExplain_JobThatIsNotDueTellsWhyAndUntilWhen(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	join(t, queue, "w1")
	scheduled := enqueue(t, database, domain.In(75*time.Hour))
	wantSaid(t, explained(t, database, scheduled, support.Scheduled)[0], "it is scheduled for 20", "in 3d2h")

	snoozed := enqueue(t, database)
	mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{Verdict: domain.Release, Delay: 90 * time.Second}, domain.StatusPending)
	wantSaid(t, explained(t, database, snoozed, support.GivenBack)[0], "given back without spending an attempt", "in 1m")

	retrying := enqueue(t, database)
	mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{Verdict: domain.Retry, Delay: 90 * time.Minute, Error: "smtp 421"}, domain.StatusPending)
	wantSaid(t, explained(t, database, retrying, support.Retrying)[0], "to be tried again at 20", "in 1h", `attempt 1 of 5 is over; the last error is "smtp 421"`)

	reclaimed := enqueue(t, database)
	claimOne(t, queue, "w1")
	database.Exec(t, "UPDATE holdfast.inbox SET lease_expires_at = now() - interval '1 second' WHERE id = $1", reclaimed.String())
	mustReclaim(t, queue, 1)
	database.Exec(t, "UPDATE holdfast.inbox SET available_at = now() + interval '1 minute' WHERE id = $1", reclaimed.String())
	wantSaid(t, explained(t, database, reclaimed, support.Retrying)[0], "attempt 1 of 5 ended without an error")
}

func TestExplain_OrderedJobTellsWhatIsBeforeItAndWhyThatDoesNotRun(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	mail := registration("w1")
	mail.Queues = []string{"mail"}
	wantError(t, queue.Join(t.Context(), mail), nil)
	if _, err := domain.SetQueue(t.Context(), database.Pool, "mail", domain.QueueChange{Ordered: new(true)}); err != nil {
		t.Fatal(err)
	}
	jobs := enqueueNotes(t, database, 3, domain.OnQueue("mail"), domain.Key("order:7"))
	other := enqueue(t, database, domain.OnQueue("mail"), domain.Key("order:8"))
	explained(t, database, jobs[0], support.Due)
	explained(t, database, other, support.Due)

	third := explained(t, database, jobs[2], support.BehindHead)[0]
	wantSaid(t, third, "it is behind 2 jobs of key order:7", "the first is "+jobs[0].String(), "holdfast jobs explain "+jobs[0].String())
	wantCodes(t, third.Because, support.Due)

	database.Exec(t, "UPDATE holdfast.inbox SET available_at = now() + interval '1 hour' WHERE id = $1", jobs[0].String())
	wantCodes(t, explained(t, database, jobs[1], support.BehindHead)[0].Because, support.Scheduled)

	// What the job says itself is not said again of the one before it.
	wantError(t, domain.PauseQueue(t.Context(), database.Pool, "mail"), nil)
	wantCodes(t, explained(t, database, jobs[1], support.QueuePaused, support.BehindHead)[1].Because, support.Scheduled)
	wantError(t, domain.ResumeQueue(t.Context(), database.Pool, "mail"), nil)

	database.Exec(t, "UPDATE holdfast.inbox SET available_at = now() WHERE id = $1", jobs[0].String())
	claimed, err := queue.Claim(t.Context(), domain.ClaimRequest{
		WorkerID: "w1", Queue: "mail", Lanes: true, Buckets: []int{domain.BucketOf("order:7", 1024)}, Quota: 1, Batch: 1, Lease: lease,
	})
	if err != nil || len(claimed) != 1 || claimed[0].ID != jobs[0] {
		t.Fatalf("claimed %+v, %v", claimed, err)
	}
	second := explained(t, database, jobs[1], support.LaneBusy)[0]
	wantSaid(t, second, "another job of key order:7 has been claimed", jobs[0].String())
	wantCodes(t, second.Because, support.Processing, support.HolderAlive)
	// The one before the third is asked too, but no further.
	because := explained(t, database, jobs[2], support.BehindHead)[0].Because
	wantCodes(t, because, support.LaneBusy)
	wantCodes(t, because[0].Because)
}

func wantCodes(t *testing.T, reasons []support.Reason, want ...support.Code) {
	t.Helper()
	var codes []support.Code
	for _, reason := range reasons {
		codes = append(codes, reason.Code)
	}
	if !slices.Equal(codes, want) {
		t.Errorf("because of %v, want %v", codes, want)
	}
}

func TestExplain_QueueThatNobodyServes(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	id := enqueue(t, database, domain.OnQueue("mail"), domain.In(time.Hour))
	join(t, queue, "w1") // Of another queue.
	reasons := explained(t, database, id, support.Scheduled, support.NoWorker)
	wantSaid(t, reasons[1], "no live worker serves queue mail", "start a worker of queue mail")

	mail := registration("w2")
	mail.Queues = []string{"mail"}
	wantError(t, queue.Join(t.Context(), mail), nil)
	explained(t, database, id, support.Scheduled)
	database.Exec(t, "UPDATE holdfast.workers SET last_seen_at = now() - interval '31 seconds' WHERE id = 'w2'")
	wantSaid(t, explained(t, database, id, support.Scheduled, support.BucketUnowned)[1],
		fmt.Sprintf("its bucket, %d, has no owner", find(t, database, id).Bucket), "none was seen for 30s; the last is w2, 31", "reach the database")
	database.Exec(t, "UPDATE holdfast.workers SET last_seen_at = now() WHERE id = 'w2'")
	wantError(t, domain.Drain(t.Context(), database.Pool, "w2"), nil)
	wantSaid(t, explained(t, database, id, support.Scheduled, support.NoWorker)[1], "1 drain")
}

// handlerOf is a handler of a kind.
func handlerOf(kind string) holdfast.Handler {
	return worker.HandleKind(kind, func(ctx context.Context, _ domain.ClaimedJob) error { return nil })
}

func untilGivenBack(t *testing.T, database *pgtest.Database, id domain.JobID) {
	t.Helper()
	pgtest.Eventually(t, patience, "the job has been claimed and given back", func() bool {
		job := find(t, database, id)
		return job.Status == domain.StatusPending && job.Generation > 0
	})
}

func TestExplain_KindThatNoWorkerRuns(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	startWorker(t, database, database.Pool, "w", quick(), handlerOf("send"), handlerOf("print"))
	id := enqueue(t, database)
	untilGivenBack(t, database, id)
	reasons := explained(t, database, id, support.GivenBack, support.KindNotServed)
	wantSaid(t, reasons[1], "1 live worker of queue default, and none runs kind note: they run print, send", "with a handler for kind note")
}

func TestExplain_KindThatTheOwnerDoesNotRun(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	config := quick()
	config.RingCache = ringCache
	startWorker(t, database, database.Pool, "a", config, handlerOf("note"))
	startWorker(t, database, database.Pool, "b", config, handlerOf("print"))
	untilShared(t, database, 2)
	id := enqueue(t, database, domain.Key(keyOf(t, "b-1", "a-1", "b-1")))
	untilGivenBack(t, database, id)
	reasons := explained(t, database, id, support.GivenBack, support.OwnerLacksKind)
	wantSaid(t, reasons[1], "b-1, the owner of its bucket", "does not run kind note", "; a-1 would run it", "a queue of its own")
	// A worker that goes by no ring would claim it too.
	database.Exec(t, `UPDATE holdfast.inbox SET available_at = now() + interval '1 hour'`)
	config.Affinity = worker.AffinityNone
	startWorker(t, database, database.Pool, "c", config, handlerOf("note"))
	pgtest.Eventually(t, patience, "the third worker has joined", func() bool {
		return pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.workers") == 3
	})
	explained(t, database, id, support.GivenBack)
}

// keyOf returns a key whose bucket the owner owns among the workers.
func keyOf(t *testing.T, owner string, workers ...string) string {
	t.Helper()
	ring := worker.NewRing(workers, 1024)
	for i := range 1000 {
		if key := fmt.Sprint("key:", i); ring.Owner(domain.BucketOf(key, 1024)) == owner {
			return key
		}
	}
	t.Fatalf("%s owns no bucket", owner)
	return ""
}

func TestExplain_OwnerThatWasNotSeenForLong(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	join(t, queue, "w1")
	join(t, queue, "w2")
	id := enqueue(t, database, domain.Key(keyOf(t, "w2", "w1", "w2")))
	explained(t, database, id, support.Due)
	database.Exec(t, "UPDATE holdfast.workers SET last_seen_at = now() - interval '20 seconds' WHERE id = 'w2'")
	wantSaid(t, explained(t, database, id, support.OwnerLate)[0], "w2, the owner of its bucket", "last seen 20", "its buckets when it was not seen for 30s")
	// It goes by what the worker says of its time to live.
	database.Exec(t, `UPDATE holdfast.workers SET metadata = '{"worker_ttl_seconds": 60}'`)
	explained(t, database, id, support.Due)
}

func TestExplain_WorkersThatAreBusy(t *testing.T) {
	t.Parallel()
	for affinity, want := range map[worker.Affinity]struct {
		code  support.Code
		words string
	}{
		worker.AffinityRing: {support.OwnerBusy, "w-1, the owner of its bucket"},
		worker.AffinityNone: {support.WorkersBusy, "every worker of queue default is busy or late: w-1"},
	} {
		t.Run(string(affinity), func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			config := quick()
			config.Affinity, config.Concurrency = affinity, 1
			finish := make(chan struct{})
			t.Cleanup(func() { close(finish) })
			enqueue(t, database)
			startWorker(t, database, database.Pool, "w", config, worker.HandleKind("note", func(ctx context.Context, _ domain.ClaimedJob) error {
				select {
				case <-finish:
				case <-ctx.Done():
				}
				return nil
			}))
			pgtest.Eventually(t, patience, "a heartbeat says that a job is in flight", func() bool {
				return pgtest.Value[bool](t, database, `SELECT count(*) > 0 FROM holdfast.workers WHERE metadata @> '{"in_flight": 1}'`)
			})
			id := enqueue(t, database)
			wantSaid(t, explained(t, database, id, want.code)[0], want.words, "add workers or concurrency")
		})
	}
}

func TestExplain_JobsThatAreDueBeforeItAreCounted(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	join(t, database.Queue(t), "w1")
	jobs := enqueueNotes(t, database, 1200, domain.Key("order:7"))
	wantSaid(t, explained(t, database, jobs[0], support.Due)[0], "nothing keeps it", "the next claim of w1, the owner of its bucket")
	wantSaid(t, explained(t, database, jobs[1], support.JobsBefore)[0], "1 due job of its bucket", "come before it", "holdfast keys hot --queue default")
	wantSaid(t, explained(t, database, jobs[1199], support.JobsBefore)[0], "more than 1000 due jobs")
}
