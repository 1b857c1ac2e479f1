package worker_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
	"github.com/holdfast-pg/holdfast/worker"
)

var errMail = errors.New("the mail server said 451")

func TestRun_HandlersRunInParallelUpToConcurrencyAndNeverAbove(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Concurrency = 3
		w.enqueueSome(10)
		g := newGate(t)
		w.start(g.handler())
		for done := range 10 {
			want := min(3, 10-done)
			equal(t, "handlers running", g.running, want)
			equal(t, "jobs held", w.count(domain.StatusProcessing), want)
			g.open(1, nil)
		}
		equal(t, "handlers that ran at once", g.most, 3)
		equal(t, "jobs completed", w.count(domain.StatusCompleted), 10)
		equal(t, "time that passed", w.elapsed(), 0)
	})
}

func TestRun_HandlerGetsTheDecodedPayload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.enqueue(model.NewJob{Payload: payload(t, letter{To: "ann"}), Key: "k", IdempotencyKey: "once"})
		var got domain.Job[letter]
		w.start(worker.Handle(func(_ context.Context, job domain.Job[letter]) error {
			got = job
			return nil
		}))
		equal(t, "payload", got.Args.To, "ann")
		equal(t, "id", got.ID, id)
		equal(t, "key", got.PartitionKey, "k")
		equal(t, "idempotency key", got.IdempotencyKey, "once")
		equal(t, "attempt", got.Attempt, 1)
		equal(t, "worker", got.WorkerID, "w1")
	})
}

func TestRun_ErrorOfTheHandlerSettlesTheJob(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err      error
		status   domain.Status
		attempts int
		wait     time.Duration // Until the job may be claimed again.
		text     string
	}{
		"none":                {nil, domain.StatusCompleted, 1, 0, ""},
		"any":                 {errMail, domain.StatusPending, 1, 2 * time.Second, errMail.Error()},
		"RetryIn":             {domain.RetryIn(7*time.Second, errMail), domain.StatusPending, 1, 7 * time.Second, errMail.Error()},
		"FailWith":            {domain.FailWith(errMail), domain.StatusFailed, 1, 0, errMail.Error()},
		"Snooze":              {domain.Snooze(7 * time.Second), domain.StatusPending, 0, 7 * time.Second, ""},
		"ErrFenced":           {fmt.Errorf("charge: %w", domain.ErrFenced), domain.StatusPending, 0, time.Second, ""},
		"cancelled by itself": {context.Canceled, domain.StatusPending, 1, 2 * time.Second, "context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				id := w.enqueue(model.NewJob{})
				w.start(returning(test.err))
				w.wantJob(id, test.status, test.attempts)
				job := w.find(id)
				equal(t, "wait", job.AvailableAt.Sub(noon), test.wait)
				if job.LastError == nil {
					job.LastError = new(string)
				}
				equal(t, "last error", *job.LastError, test.text)
			})
		})
	}
}

func TestRun_AttemptsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.enqueue(model.NewJob{MaxAttempts: 3})
		var at []time.Duration
		w.start(worker.HandleKind("send", func(context.Context, domain.ClaimedJob) error {
			at = append(at, w.elapsed())
			return errMail
		}))
		w.advance(time.Hour)
		w.wantJob(id, domain.StatusDeadLetter, 3)
		if len(at) != 3 || at[1]-at[0] < 2*time.Second || at[2]-at[1] < 4*time.Second {
			t.Errorf("attempts were made at %v, want three, 2 s and 4 s apart or more", at)
		}
		equal(t, "warnings of a dead letter", w.log.count("level=WARN", "dead-lettered", id.String(), errMail.Error()), 1)
	})
}

func TestRun_SnoozeSpendsNoAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.enqueue(model.NewJob{MaxAttempts: 1})
		runs := 0
		w.start(worker.HandleKind("send", func(_ context.Context, job domain.ClaimedJob) error {
			equal(t, "attempt", job.Attempt, 1)
			if runs++; runs < 10 {
				return domain.Snooze(time.Second)
			}
			return nil
		}))
		w.advance(time.Minute)
		equal(t, "runs", runs, 10)
		w.wantJob(id, domain.StatusCompleted, 1)
	})
}

// blowUp is looked for in the stack.
func blowUp() {
	panic("boom")
}

func TestRun_PanicIsRecordedWithItsStackAndTheWorkerLives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Concurrency = 1
		broken := w.enqueue(model.NewJob{Kind: "break"})
		w.start(returning(nil), worker.HandleKind("break", func(context.Context, domain.ClaimedJob) error {
			blowUp()
			return nil
		}))
		w.wantJob(broken, domain.StatusPending, 1)
		text := *w.find(broken).LastError
		if !strings.HasPrefix(text, "panic: boom\n") || !strings.Contains(text, "worker_test.blowUp") {
			t.Errorf("the last error does not show where the panic was:\n%s", text)
		}
		other := w.enqueue(model.NewJob{})
		w.advance(time.Second)
		w.wantJob(other, domain.StatusCompleted, 1)
	})
}

func TestRun_GoexitIsRecordedAndTheWorkerLives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Concurrency = 1
		ended := w.enqueue(model.NewJob{Kind: "end"})
		w.start(returning(nil), worker.HandleKind("end", func(context.Context, domain.ClaimedJob) error {
			runtime.Goexit()
			return nil
		}))
		w.wantJob(ended, domain.StatusPending, 1)
		equal(t, "last error", *w.find(ended).LastError, "the handler called runtime.Goexit")
		other := w.enqueue(model.NewJob{})
		w.advance(time.Second)
		w.wantJob(other, domain.StatusCompleted, 1)
	})
}

func TestRun_UnknownKindIsGivenBackForAWorkerThatKnowsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.enqueue(model.NewJob{Kind: "print"})
		w.start(returning(nil))
		w.wantJob(id, domain.StatusPending, 0)
		equal(t, "wait", w.find(id).AvailableAt.Sub(noon), 30*time.Second)
		equal(t, "logged reasons", w.log.count("level=WARN", "no handler for this kind", "kind=print", id.String(), "delay=30s"), 1)
		w.advance(5 * time.Minute)
		w.wantJob(id, domain.StatusPending, 0)
	})
}

func TestRun_HandleRestTakesEveryKindWithoutAHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, kind := range []string{"send", "print", "scan"} {
			w.enqueue(model.NewJob{Kind: kind})
		}
		rest := map[string]bool{}
		w.config.Concurrency = 1
		w.start(returning(nil), worker.HandleRest(func(_ context.Context, job domain.ClaimedJob) error {
			rest[job.Kind] = true
			return nil
		}))
		equal(t, "jobs completed", w.count(domain.StatusCompleted), 3)
		if len(rest) != 2 || !rest["print"] || !rest["scan"] {
			t.Errorf("HandleRest got the kinds %v, want print and scan", rest)
		}
	})
}

func TestRun_UndecodablePayloadFailsAtOnceWithTheReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.enqueue(model.NewJob{Payload: payload(t, map[string]int{"to": 7})})
		w.start(worker.Handle(func(context.Context, domain.Job[letter]) error {
			t.Error("the handler ran")
			return nil
		}))
		w.wantJob(id, domain.StatusFailed, 1)
		text := *w.find(id).LastError
		if !strings.Contains(text, "decode the payload") || !strings.Contains(text, "letter.to") {
			t.Errorf("the last error does not say what is wrong with the payload: %s", text)
		}
	})
}

func TestRun_LargePayloadIsWarnedOfOnceAKind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.PayloadWarning = 100
		for range 3 {
			w.enqueue(model.NewJob{Payload: payload(t, letter{To: strings.Repeat("a", 100)})})
			w.enqueue(model.NewJob{Payload: payload(t, letter{To: "a"})})
		}
		w.start(returning(nil))
		equal(t, "jobs completed", w.count(domain.StatusCompleted), 6)
		equal(t, "warnings", w.log.count("level=WARN", "large payloads", "kind=send", "bytes=109"), 1)
	})
}
