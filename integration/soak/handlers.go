package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/soak/history"
	"github.com/holdfast-pg/holdfast/worker"
)

// The queues of a run.
const (
	ordinaryQueue = domain.DefaultQueue
	orderedQueue  = "in-order"
)

// manner is how the handler of a job behaves.
type manner string

const (
	willing   manner = "willing"   // Works, writes to the sink, and returns nil.
	hesitant  manner = "hesitant"  // Fails at the first attempt.
	sleepy    manner = "sleepy"    // Puts itself off once.
	panicking manner = "panicking" // Panics at the first attempt.
	hopeless  manner = "hopeless"  // Fails at every attempt, until its cause is mended.
	refusing  manner = "refusing"  // Says at once that no attempt can succeed, until its cause is mended.
	long      manner = "long"      // Works for longer than a lease.
	deaf      manner = "deaf"      // Goes on when its context has ended, and tries to write.
)

// errand is a job whose effect is a write to the sink.
type errand struct {
	Manner manner `json:"manner"`
	Millis int    `json:"millis"` // How long it works.
}

func (errand) Kind() string { return "errand" }

// booking is a job whose effect is a row beside the inbox, in the transaction that completes it.
type booking struct {
	Millis int `json:"millis"`
}

func (booking) Kind() string { return history.Booking }

// hands are the handlers of one worker process.
type hands struct {
	diary      *diary
	jobs, sink *pgxpool.Pool
}

func (h *hands) handlers() []worker.Handler {
	return []worker.Handler{
		holdfast.Handle(func(ctx context.Context, job holdfast.Job[errand]) error {
			return h.noted(ctx, job.ClaimedJob, func() error { return h.run(ctx, job) })
		}),
		h.bookings(),
	}
}

// bookings is a handler whose run is noted around its transaction.
func (h *hands) bookings() worker.Handler {
	inTx := domain.HandleTx(h.jobs, func(ctx context.Context, tx pgx.Tx, job domain.ClaimedJob) error {
		args, err := domain.DecodeJob[booking](job)
		if err != nil {
			return err
		}
		pause(ctx, millis(args.Args.Millis))
		_, err = tx.Exec(ctx, "INSERT INTO soak.ledger (job, generation) VALUES ($1, $2)", job.ID.String(), job.Generation)
		return err
	})
	return worker.HandleSettling(booking{}.Kind(), func(ctx context.Context, job domain.ClaimedJob) error {
		return h.noted(ctx, job, func() error { return inTx(ctx, job) })
	})
}

// noted writes down that a handler starts and how it returns.
func (h *hands) noted(ctx context.Context, job domain.ClaimedJob, run func() error) (err error) {
	op := history.Op{
		Op: history.OpRunBegin, Begin: time.Now(), Job: job.ID.String(), Queue: job.Queue, PartitionKey: job.PartitionKey,
		Kind: job.Kind, WorkerID: job.WorkerID, Generation: job.Generation, Attempt: job.Attempt,
	}
	h.diary.write(op)
	returned := false
	defer func() {
		op.Op, op.CutShort, op.Outcome = history.OpRunEnd, ctx.Err() != nil, history.OK
		op.Verdict = domain.Complete.String()
		if err != nil || !returned {
			op.Outcome, op.Verdict = history.Error, ""
		}
		if err != nil {
			op.Error = err.Error()
		}
		h.diary.write(op)
	}()
	if err = run(); err != nil {
		err = fmt.Errorf("claim %d: %w", job.Generation, err) // Each of a job's errors differs.
	}
	returned = true
	return err
}

var (
	errFirst  = errors.New("the first attempt fails")
	errAlways = errors.New("every attempt fails")
	errNever  = errors.New("no attempt can succeed")
)

func (h *hands) run(ctx context.Context, job holdfast.Job[errand]) error {
	first := job.Attempt == 1
	switch job.Args.Manner {
	case hesitant:
		if first {
			return holdfast.RetryIn(50*time.Millisecond, errFirst)
		}
	case sleepy:
		// A snooze refunds its attempt, so the age of the job tells whether it has slept.
		if time.Since(job.CreatedAt) < time.Second {
			return holdfast.Snooze(time.Second)
		}
	case panicking:
		if first {
			panic(errFirst)
		}
	case willing, long, deaf:
	case hopeless, refusing:
		if err := h.isMended(ctx, job.Args.Manner); err != nil {
			return err
		}
	}
	if job.Args.Manner == deaf {
		ctx = context.WithoutCancel(ctx)
	}
	if first || job.Args.Manner == long {
		pause(ctx, millis(job.Args.Millis)) // Later attempts are quick, so that they overtake one that is not over.
	}
	return h.write(ctx, job)
}

// isMended fails a job until an operator has mended what it fails of.
func (h *hands) isMended(ctx context.Context, manner manner) error {
	var mended bool
	err := h.jobs.QueryRow(ctx, "SELECT EXISTS (SELECT FROM soak.mended)").Scan(&mended)
	switch {
	case err != nil || mended:
		return err
	case manner == refusing:
		return holdfast.Fail(errNever)
	}
	return holdfast.RetryIn(10*time.Millisecond, errAlways)
}

func millis(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// effectPatience bounds a write to the sink by a handler that does not listen to its context.
const effectPatience = 5 * time.Second

// write writes to the sink under the job's fence, and keeps a note there of a refusal.
func (h *hands) write(ctx context.Context, job holdfast.Job[errand]) error {
	ctx, cancel := context.WithTimeout(ctx, effectPatience)
	defer cancel()
	resource := job.ID.String()
	if job.Queue == orderedQueue {
		resource = job.PartitionKey
	}
	begin := time.Now()
	err := pgx.BeginFunc(ctx, h.sink, func(tx pgx.Tx) error {
		if err := holdfast.Guard(ctx, tx, resource, job); err != nil {
			return err
		}
		return keep(ctx, tx, resource, job.ClaimedJob, true)
	})
	if errors.Is(err, holdfast.ErrFenced) {
		if noted := keep(ctx, h.sink, resource, job.ClaimedJob, false); noted != nil {
			err = errors.Join(err, noted)
		}
	}
	outcome, text := outcomeOf(err)
	h.diary.write(history.Op{
		Op: history.OpEffect, Begin: begin, Outcome: outcome, Error: text, Job: job.ID.String(),
		WorkerID: job.WorkerID, Generation: job.Generation, Resource: resource,
	})
	return err
}

func keep(ctx context.Context, db domain.DBTX, resource string, job domain.ClaimedJob, accepted bool) error {
	_, err := db.Exec(ctx, "INSERT INTO effects (resource, token, job, worker, accepted) VALUES ($1, $2, $3, $4, $5)",
		resource, job.Fence(), job.ID.String(), job.WorkerID, accepted)
	return err
}
