package simulate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
	"github.com/holdfast-pg/holdfast/worker"
)

const (
	// buckets are fewer than those of an installation by default, because looking at each takes
	// most of the time of a simulation.
	buckets = 360

	// longest is how long a story may take, in its own time.
	longest = 2 * time.Hour

	// epilogue is how long its workers may take to leave.
	epilogue = 5 * time.Minute
)

// began is when every story begins.
var began = time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)

// stage is where a scene is played: an empty installation, the world outside it, and processes.
type stage struct {
	schedule
	record

	seed        int64
	rest        *rest
	jobs        *model.Queue
	outside     *outside
	kinds       []kind
	processes   []*process
	told        int64    // Moments of the story that were planned.
	untold      int      // Of these, those that are yet to happen.
	elected     *process // Keeps house.
	tellWaits   bool     // In the rows of starts, in place of tokens.
	tellBuckets bool     // In the lanes, in place of handlers.

	// guard compares the token of a claim with those that a resource has seen; nil: nobody does.
	guard func(ctx context.Context, resource string, claim domain.Claim) error
}

// kind is a kind of job and its handler.
type kind struct {
	name   string
	handle func(*run) error
}

func newStage(seed int64, r *rest) *stage {
	s := &stage{schedule: schedule{now: began}, record: newRecord(), seed: seed, rest: r, outside: newOutside()}
	s.jobs = model.New(model.Settings{
		BucketCount: buckets,
		Now:         s.Now,
		Random:      rand.New(rand.NewPCG(uint64(seed), 1)),
	})
	return s
}

// fence lets handlers guard what they write.
func (s *stage) fence() { s.guard = s.jobs.Guard }

// handle adds a kind of job, for workers that start later.
func (s *stage) handle(name string, handler func(*run) error) {
	s.kinds = append(s.kinds, kind{name, handler})
}

// chance returns a number in [0, 1) that follows from the seed and what it is for.
func (s *stage) chance(of string, n int64) float64 {
	hash := fnv.New64a()
	_ = binary.Write(hash, binary.LittleEndian, [2]int64{s.seed, n}) // A hash takes everything.
	_, _ = hash.Write([]byte(of))
	sum := hash.Sum64()
	return rand.New(rand.NewPCG(sum, ^sum)).Float64()
}

// between draws a duration.
func (s *stage) between(of string, n int64, least, most time.Duration) time.Duration {
	return least + time.Duration(s.chance(of, n)*float64(most-least)).Truncate(time.Millisecond)
}

// after lets something happen in the story, which lasts until then at least.
func (s *stage) after(d time.Duration, happen func()) {
	s.mutex.Lock()
	s.told++
	s.untold++
	number := s.told
	s.mutex.Unlock()
	s.plan(nil, "", number, d, func() {
		s.mutex.Lock()
		s.untold--
		s.mutex.Unlock()
		happen()
	})
}

// request places a job as a client does that got no answer to its first request: twice, under
// one idempotency key.
func (s *stage) request(job model.NewJob) {
	job.IdempotencyKey = job.Kind + ":" + job.Key
	s.enqueue(job)
	s.enqueue(job)
}

func (s *stage) enqueue(job model.NewJob) {
	result, err := s.jobs.Enqueue(forGood, job)
	if err != nil {
		panic(fmt.Sprintf("simulate: enqueue %s: %v", job.Kind, err)) // The model refuses no job but one with an id.
	}
	s.noteEnqueued(result.Duplicate)
}

// elect makes a process the housekeeper, unless there is one.
func (s *stage) elect(p *process) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.elected != nil {
		return false
	}
	s.elected = p
	return true
}

func (s *stage) unelect(p *process) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.elected == p {
		s.elected = nil
	}
}

// play lets the story happen until it is told, every job is done, and every handler that lives
// has come to its end; then the workers leave.
func (s *stage) play(ctx context.Context) error {
	s.settle()
	for !s.isOver() {
		if err := s.step(ctx, longest); err != nil {
			return err
		}
	}
	s.end()
	return s.strike(ctx)
}

// errStuck says that a story does not come to its end.
var errStuck = errors.New("the story does not come to its end")

// step lets the next moment happen.
func (s *stage) step(ctx context.Context, limit time.Duration) error {
	next := s.take()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case next == nil || s.Now().Sub(began) > limit:
		return errStuck
	}
	next.happen()
	s.settle()
	return nil
}

// settle waits until every goroutine rests, and records what was told meanwhile.
func (s *stage) settle() {
	s.rest.await()
	s.flush(s.Now().Sub(began))
}

func (s *stage) isOver() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.untold > 0 || s.open > 0 {
		return false
	}
	for _, p := range s.processes {
		if !p.stopped && p.lane.unsettled > 0 {
			return false
		}
	}
	return true
}

// strike lets the workers leave, and buries the killed ones: their goroutines end too.
func (s *stage) strike(ctx context.Context) error {
	limit := s.Now().Sub(began) + epilogue
	for _, p := range s.processes {
		p.cancel()
		if p.killed {
			s.resume(p)
			close(p.buried)
		}
	}
	s.settle()
	for _, p := range s.processes {
		for !p.hasReturned() {
			if err := s.step(ctx, limit); err != nil {
				return fmt.Errorf("stop %s: %w", p.name, err)
			}
		}
		if p.err != nil {
			return fmt.Errorf("worker %s: %w", p.name, p.err)
		}
	}
	return nil
}

// ordinary are the settings of a worker that differ from the defaults in nothing but this.
func ordinary(concurrency int, affinity worker.Affinity) func(*worker.Config) {
	return func(config *worker.Config) {
		config.Concurrency, config.Affinity = concurrency, affinity
	}
}
