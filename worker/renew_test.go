package worker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

const (
	lease      = 90 * time.Second
	margin     = 9 * time.Second
	renewEvery = 30 * time.Second
	turnEvery  = renewEvery / 10
)

// repeatable draws the same numbers in every run, for many goroutines.
func repeatable() func() float64 {
	var mutex sync.Mutex
	random := rand.New(rand.NewPCG(7, 7))
	return func() float64 {
		mutex.Lock()
		defer mutex.Unlock()
		return random.Float64()
	}
}

// renewals are the times at which each job was renewed.
func renewals(calls []call) map[domain.JobID][]time.Duration {
	times := map[domain.JobID][]time.Duration{}
	for _, c := range calls {
		for _, claim := range c.renewed {
			times[claim.ID] = append(times[claim.ID], c.at)
		}
	}
	return times
}

func TestRenew_SlowHandlerKeepsItsJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.enqueue(model.NewJob{})
		g := newGate(t)
		w.start(g.handler())
		w.advance(10 * lease)
		w.wantJob(id, domain.StatusProcessing, 1)
		g.open(1, nil)
		w.wantJob(id, domain.StatusCompleted, 1)
		equal(t, "runs", len(g.jobs()), 1)
	})
}

func TestRenew_EveryHeldJobIsRenewedInEveryInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		const jobs = 100
		w.config.Concurrency, w.config.ClaimBatch, w.config.Random = jobs, jobs, repeatable()
		g := newGate(t)
		w.start(g.handler())
		for range jobs {
			w.enqueue(model.NewJob{})
			w.advance(250 * time.Millisecond) // Claims fall between the turns.
		}
		w.advance(10 * renewEvery)
		times := renewals(w.calls("Renew"))
		equal(t, "jobs renewed", len(times), jobs)
		for id, renewed := range times {
			before := w.find(id).ClaimedAt.Sub(noon)
			for _, at := range append(renewed, w.elapsed()) {
				if at-before > renewEvery {
					t.Errorf("job %s was not renewed from %s to %s", id, before, at)
				}
				before = at
			}
		}
		g.open(jobs, nil)
	})
}

func TestRenew_RenewalsAreSpreadOverTenTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		const jobs = 200
		w.config.Concurrency, w.config.ClaimBatch, w.config.Random = jobs, jobs, repeatable()
		w.enqueueSome(jobs)
		g := newGate(t)
		w.start(g.handler())
		w.advance(renewEvery)
		wantSpread(t, w.calls("Renew"), jobs)

		// An outage gathers what was due in it, but not for ever.
		w.spoil("Renew", fault{err: errCut, times: 9})
		w.advance(renewEvery)
		before := len(w.calls("Renew"))
		w.advance(renewEvery)
		wantSpread(t, w.calls("Renew")[before:], jobs)
		g.open(jobs, nil)
	})
}

// wantSpread fails the test unless the calls are turns of one interval, in which each job
// stands once.
func wantSpread(t *testing.T, calls []call, jobs int) {
	t.Helper()
	total := 0
	for _, c := range calls {
		total += len(c.renewed)
		if len(c.renewed) > jobs/5 {
			t.Errorf("%d of %d jobs were renewed in one statement, at %s", len(c.renewed), jobs, c.at)
		}
	}
	equal(t, "renewals in one interval", total, jobs)
}

func TestRenew_JobsWithASettlementUnderWayAreLeftOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		settling, running := w.enqueue(model.NewJob{}), w.enqueue(model.NewJob{})
		g := newGate(t)
		w.start(g.handler())
		w.advance(renewEvery)
		equal(t, "jobs renewed before", len(renewals(w.calls("Renew"))), 2)

		answered := make(chan struct{})
		w.spoil("Settle", fault{until: answered})
		g.open(1, nil) // Whichever receives first.
		held := w.calls("Settle")[0].settlements[0].Claim.ID
		if held == running {
			settling, running = running, settling
		}
		before := len(w.calls("Renew"))
		w.advance(2 * renewEvery)
		times := renewals(w.calls("Renew")[before:])
		equal(t, "renewals of the job that is being settled", len(times[settling]), 0)
		equal(t, "renewals of the job that runs", len(times[running]), 2)

		close(answered)
		w.advance(0)
		w.wantJob(settling, domain.StatusCompleted, 1)
		g.open(1, nil)
	})
}

func TestRenew_WaitingForItsFlushAJobIsRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.spoil("Settle", fault{err: errCut, times: always})
		id := w.enqueue(model.NewJob{})
		w.start(returning(nil))
		w.advance(2 * lease)
		w.wantJob(id, domain.StatusProcessing, 1)
		w.mend("Settle")
		w.advance(10 * time.Second)
		w.wantJob(id, domain.StatusCompleted, 1)
	})
}

func TestRenew_ErrorIsTriedAgainAtTheNextTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.enqueue(model.NewJob{})
		g := newGate(t)
		w.start(g.handler())
		w.spoil("Renew", fault{err: errCut, times: 2})
		w.advance(2 * renewEvery)
		// Its turn is the sixth of ten.
		want := []time.Duration{6 * turnEvery, 7 * turnEvery, 8 * turnEvery, renewEvery + 6*turnEvery}
		if got := renewals(w.calls("Renew"))[id]; !slices.Equal(got, want) {
			t.Errorf("renewals at %v, want %v", got, want)
		}
		equal(t, "errors logged", w.log.count("level=ERROR", "cannot renew leases", errCut.Error()), 2)
		g.open(1, nil)
		w.wantJob(id, domain.StatusCompleted, 1)
	})
}

func TestFenced_HandlerOfALostLeaseIsCancelledAndItsResultRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.enqueue(model.NewJob{})
		g := newGate(t)
		w.start(g.handler())
		w.giveBack(id, time.Hour)
		w.advance(renewEvery)
		wantCause(t, g, domain.ErrLeaseLost)
		w.wantJob(id, domain.StatusPending, 0)
		equal(t, "wait", w.find(id).AvailableAt.Sub(noon), time.Hour)
		equal(t, "refusals logged", w.log.count("level=WARN", "the result was refused", domain.ErrLeaseLost.Error()), 1)
		w.wantWorking()
	})
}

func TestFenced_LateResultOfALostLeaseDoesNotTouchTheNextClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.enqueue(model.NewJob{})
		g := newGate(t)
		w.start(g.stubborn())
		w.giveBack(id, 0)
		claimed, err := w.Queue.Claim(t.Context(), domain.ClaimRequest{
			WorkerID: "other", Queue: domain.DefaultQueue, Buckets: []int{id.Bucket()}, Quota: 1, Batch: 1, Lease: time.Hour,
		})
		if err != nil || len(claimed) != 1 {
			t.Fatalf("the other worker claimed %d jobs: %v", len(claimed), err)
		}
		w.advance(renewEvery)
		g.open(1, nil)
		equal(t, "holder", *w.find(id).ClaimedBy, "other")
		equal(t, "refusals logged", w.log.count("the result was refused"), 1)
		w.Queue.Settle(t.Context(), "other", []domain.Settlement{{Claim: claimed[0].Claim}})
	})
}

// A worker may claim a job again before it was told that it had lost it.
func TestFenced_OlderClaimOfTheSameWorkerIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const jobs = 8
		w := newWorld(t)
		w.config.Concurrency = 2 * jobs
		w.enqueueSome(jobs)
		g := newGate(t)
		w.start(g.handler())
		for _, job := range g.jobs() {
			w.giveBack(job.ID, 0)
		}
		w.advance(2 * time.Second)
		equal(t, "runs", len(g.jobs()), 2*jobs)
		w.advance(renewEvery)
		equal(t, "runs that were cancelled", len(g.stopped()), jobs)
		equal(t, "runs that go on", g.running, jobs)
		g.open(jobs, nil)
		equal(t, "jobs completed", w.count(domain.StatusCompleted), jobs)
	})
}

// Without an answer to its renewals a worker gives a job up before anybody may reclaim it,
// at whatever phase its renewals come.
func TestNeverTakenEarly_WorkerGivesUpBeforeTheLeaseEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		cut    fault
		margin time.Duration
	}{
		"renewals are refused":                     {fault{err: errCut, times: always}, margin},
		"renewals are not answered":                {fault{err: context.DeadlineExceeded, takes: lease / 3, times: always}, margin},
		"renewals are not answered, narrow margin": {fault{err: context.DeadlineExceeded, takes: lease / 3, times: always}, time.Second},
	} {
		for phase := range 10 {
			t.Run(fmt.Sprintf("%s, phase %d", name, phase), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					w.config.Random = func() float64 { return float64(phase) / 10 }
					w.config.LeaseMargin = test.margin
					w.enqueueSome(8)
					g := newGate(t)
					w.start(g.handler())
					w.spoil("Renew", test.cut)
					w.advance(lease - test.margin)
					equal(t, "handlers cancelled before the margin", len(g.stopped()), 0)
					w.advance(test.margin - time.Millisecond)
					equal(t, "handlers cancelled within the margin", len(g.stopped()), 8)
					for _, cause := range g.stopped() {
						if !errors.Is(cause, domain.ErrLeaseLost) {
							t.Errorf("the cause is %v, want ErrLeaseLost", cause)
						}
					}
					w.mend("Renew")
				})
			})
		}
	}
}

// A database that answers late is still one that answers.
func TestRenew_SlowAnswersLoseNoJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		const jobs = 50
		w.config.Concurrency, w.config.ClaimBatch, w.config.Random = jobs, jobs, repeatable()
		w.enqueueSome(jobs)
		g := newGate(t)
		w.start(g.handler())
		w.spoil("Renew", fault{takes: renewEvery - time.Second, times: always})
		w.advance(10 * lease)
		equal(t, "handlers cancelled", len(g.stopped()), 0)
		w.mend("Renew")
		w.advance(renewEvery)
		g.open(jobs, nil)
		equal(t, "jobs completed", w.count(domain.StatusCompleted), jobs)
	})
}

// The deadline counts from before the claim was sent, however late its reply.
func TestNeverTakenEarly_LeaseCountsFromTheSendingOfTheClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		const slow = 20 * time.Second
		w.spoil("Claim", fault{takes: slow})
		w.spoil("Renew", fault{err: errCut, times: always})
		w.enqueue(model.NewJob{})
		g := newGate(t)
		w.start(g.handler())
		w.advance(slow)
		equal(t, "runs", len(g.jobs()), 1)
		w.advance(lease - margin/2 - slow)
		wantCause(t, g, domain.ErrLeaseLost)
		w.mend("Renew")
	})
}

func wantCause(t *testing.T, g *gate, want error) {
	t.Helper()
	causes := g.stopped()
	if len(causes) != 1 || !errors.Is(causes[0], want) {
		t.Errorf("contexts ended with %v, want one with %v", causes, want)
	}
}
