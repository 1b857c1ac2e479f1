package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

const (
	producerSet     = 20                     // The most jobs of one transaction.
	keySlot         = 100 * time.Millisecond // Producers that enqueue in one slot meet at its keys.
	enqueuePatience = 5 * time.Second
	lanes           = 40 // Partition keys of the ordered queue.
)

// producer enqueues jobs in transactions of its own, each beside a row that only it knows.
type producer struct {
	given  orders
	diary  *diary
	pool   *pgxpool.Pool
	random *rand.Rand
	count  int
}

// produce is the life of a producer process: until it is told to end.
func produce(ctx context.Context, given orders) (err error) {
	file, err := history.Create(given.Dir, history.ClientFile(given.Name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	pool, err := pgxpool.New(ctx, given.JobsURL)
	if err != nil {
		return err
	}
	defer pool.Close()
	p := &producer{given: given, diary: &diary{file: file, process: given.Name}, pool: pool, random: rand.New(rand.NewPCG(given.Seed, 1))}
	for ctx.Err() == nil {
		jobs := 1 + p.random.IntN(producerSet)
		p.enqueue(context.WithoutCancel(ctx), p.draw(jobs))
		pause(ctx, time.Duration(jobs)*time.Second/time.Duration(given.Rate))
	}
	return nil
}

// wish is a job that the producer wants, and how it will know it again.
type wish struct {
	job     holdfast.NewJob
	queue   string
	key     string
	once    string
	kind    string
	marker  string
	retried bool
}

func (p *producer) draw(jobs int) []wish {
	wishes := make([]wish, jobs)
	for i := range wishes {
		wishes[i] = p.drawOne(i)
	}
	return wishes
}

func (p *producer) drawOne(i int) wish {
	w := wish{queue: ordinaryQueue, kind: errand{}.Kind(), marker: p.nextMarker()}
	var options []holdfast.EnqueueOption
	switch n := p.random.IntN(100); {
	case n < 15:
		w.kind = booking{}.Kind()
		w.job.Args = booking{Millis: p.random.IntN(5)}
	default:
		w.job.Args = p.drawErrand()
	}
	if p.random.IntN(5) == 0 {
		w.queue, w.key = orderedQueue, fmt.Sprintf("lane-%d", p.random.IntN(lanes))
		options = append(options, holdfast.OnQueue(w.queue), holdfast.Key(w.key))
	}
	if p.random.IntN(5) == 0 {
		w.once = fmt.Sprintf("once-%d-%d", time.Now().UnixNano()/int64(keySlot), i)
		options = append(options, holdfast.Once(w.once))
	}
	options = append(options, holdfast.MaxAttempts(20))
	if args, isErrand := w.job.Args.(errand); isErrand && args.Manner == hopeless {
		options = append(options, holdfast.MaxAttempts(2))
	}
	w.job.Options = options
	return w
}

// drawErrand draws an errand of some milliseconds. Few outlive a lease, and of those that do not
// listen half outlive the next claim too.
func (p *producer) drawErrand() errand {
	drawn := errand{Manner: p.drawManner(), Millis: p.random.IntN(20)}
	span := int(lease.Milliseconds())
	switch {
	case drawn.Manner == long:
		drawn.Millis = span + p.random.IntN(span)
	case drawn.Manner == deaf && p.random.IntN(2) == 0:
		drawn.Millis = 2*span + p.random.IntN(2*span)
	}
	return drawn
}

// drawManner draws how the handler behaves: most of them do as they should.
func (p *producer) drawManner() manner {
	switch n := p.random.IntN(1000); {
	case n < 40:
		return hesitant
	case n < 60:
		return sleepy
	case n < 80:
		return panicking
	case n < 90:
		return hopeless
	case n < 100:
		return refusing
	case n < 105:
		return long
	case n < 130:
		return deaf
	}
	return willing
}

func (p *producer) nextMarker() string {
	p.count++
	return fmt.Sprintf("%s/%d", p.given.Name, p.count)
}

var errChangedMind = errors.New("the producer has changed its mind")

// enqueue runs the transaction, and once more for what got no answer and has a key to be known
// by.
func (p *producer) enqueue(ctx context.Context, wishes []wish) {
	begin := time.Now()
	results, outcome, err := p.transact(ctx, wishes)
	var again []wish
	for i, wish := range wishes {
		op := history.Op{
			Op: history.OpEnqueue, Begin: begin, Outcome: outcome, Marker: wish.marker, Queue: wish.queue,
			PartitionKey: wish.key, IdempotencyKey: wish.once, Kind: wish.kind, Repeated: wish.retried,
		}
		if err != nil {
			op.Error = err.Error()
		}
		if i < len(results) {
			op.Job = results[i].ID.String()
			if outcome == history.OK && results[i].Duplicate {
				op.Outcome = history.Duplicate
			}
		}
		p.diary.write(op)
		if outcome == history.Ambiguous && wish.once != "" {
			wish.marker, wish.retried = p.nextMarker(), true
			again = append(again, wish)
		}
	}
	if len(again) > 0 {
		pause(ctx, 200*time.Millisecond)
		p.enqueue(ctx, again)
	}
}

func (p *producer) transact(ctx context.Context, wishes []wish) (results []holdfast.EnqueueResult, outcome string, err error) {
	ctx, cancel := context.WithTimeout(ctx, enqueuePatience)
	defer cancel()
	tx, err := p.pool.Begin(ctx)
	if err != nil {
		return nil, history.Error, err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if results, err = p.write(ctx, tx, wishes); err != nil {
		return nil, history.Error, err // Nothing can have been committed.
	}
	if p.random.IntN(50) == 0 {
		return results, history.RolledBack, errChangedMind
	}
	if err := tx.Commit(ctx); err != nil {
		outcome = history.Ambiguous
		if didNotHappen(err) || errors.Is(err, pgx.ErrTxCommitRollback) {
			outcome = history.Error
		}
		return results, outcome, err
	}
	return results, history.OK, nil
}

func (p *producer) write(ctx context.Context, tx pgx.Tx, wishes []wish) ([]holdfast.EnqueueResult, error) {
	jobs := make([]holdfast.NewJob, len(wishes))
	for i, wish := range wishes {
		jobs[i] = wish.job
	}
	results, err := holdfast.EnqueueMany(ctx, tx, jobs...)
	if err != nil {
		return nil, err
	}
	var batch pgx.Batch
	for i, wish := range wishes {
		batch.Queue("INSERT INTO soak.placed (marker, job) VALUES ($1, $2)", wish.marker, results[i].ID.String())
		batch.Queue("SELECT pg_logical_emit_message(true, 'soak', $1)", wish.marker)
	}
	return results, tx.SendBatch(ctx, &batch).Close()
}
