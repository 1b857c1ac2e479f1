package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/worker"
)

// The pause before each job of latency.
const (
	leastPause = 50 * time.Millisecond
	mostPause  = 200 * time.Millisecond
)

// latency asks how long a job waits for a worker that has nothing else to do.
var latency = scenario{
	name:  "latency",
	about: "one job now and then for an idle worker, until its handler begins",
	trials: func(o Options) []trial {
		jobs := o.jobs(30, 300)
		with := func(name string, pollOnly bool) trial {
			return trial{
				name:  name,
				needs: needs{workers: 1, producers: 1, jobs: jobs, payload: o.Payload},
				run:   func(ctx context.Context, s *stage) ([]Figure, error) { return s.latency(ctx, pollOnly, jobs) },
			}
		}
		return []trial{with("notified", false), with("polling", true)}
	},
}

// call is when a call of Enqueue began and when it returned: the job is committed then.
type call struct {
	began, returned time.Time
}

func (s *stage) latency(ctx context.Context, pollOnly bool, jobs int) ([]Figure, error) {
	settings := s.fast()
	settings.PollOnly, settings.Wait = pollOnly, waitEach
	crew, err := s.hire(ctx, settings, 1)
	if err != nil {
		return nil, err
	}
	m, err := s.measure(ctx, crew)
	if err != nil {
		return nil, err
	}
	if err := s.awaitIdle(ctx, crew, pollOnly); err != nil {
		return nil, err
	}
	s.server.progress.begin(s.title, jobs)
	calls, err := s.enqueueNowAndThen(ctx, crew, jobs)
	if err != nil {
		return nil, err
	}
	if err := s.awaitDone(ctx, crew, jobs); err != nil {
		return nil, err
	}
	if _, err := m.stop(ctx); err != nil {
		return nil, err
	}
	all, err := m.end(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := all.costs(jobs); err != nil { // Most of what an idle worker costs is no job's.
		return nil, err
	}
	if err := s.checkArchived(ctx, jobs); err != nil {
		return nil, err
	}
	figures := []Figure{{"jobs", "", float64(jobs)}}
	if pollOnly {
		defaults := worker.Config{}.WithDefaults()
		figures = append(figures,
			Figure{"first poll", "ms", float64(defaults.ActivePoll.Milliseconds())},
			Figure{"idle poll", "ms", float64(defaults.IdlePoll.Milliseconds())})
	}
	waits, err := pickups(calls, all.Began)
	return append(figures, waits...), err
}

// enqueueNowAndThen enqueues jobs one by one, with a pause before each, and tells when.
func (s *stage) enqueueNowAndThen(ctx context.Context, crew *crew, jobs int) ([]call, error) {
	pauses := rand.New(rand.NewPCG(uint64(s.Seed), 1))
	calls := make([]call, jobs)
	for i := range calls {
		if err := s.pass(ctx, crew, leastPause+time.Duration(pauses.Int64N(int64(mostPause-leastPause)))); err != nil {
			return nil, err
		}
		calls[i].began = time.Now()
		job := s.jobs.batch(1, calls[i].began)[0]
		if _, err := holdfast.Enqueue(ctx, s.pool, job.Args, job.Options...); err != nil {
			return nil, err
		}
		calls[i].returned = time.Now()
		s.server.progress.at(i + 1)
	}
	return calls, nil
}

// pickups are how long jobs waited for their handlers, from the return of their enqueue and
// from its beginning, which names them. A handler may begin before the call returns: the
// commit comes first.
func pickups(calls []call, began map[int64]int64) ([]Figure, error) {
	fromReturn, fromBegin := newHistogram(), newHistogram()
	for _, call := range calls {
		handler, found := began[call.began.UnixNano()]
		if !found {
			return nil, fmt.Errorf("no handler tells of the job that was enqueued at %s", call.began)
		}
		fromReturn.record(time.Duration(handler - call.returned.UnixNano()))
		fromBegin.record(time.Duration(handler - call.began.UnixNano()))
	}
	return append(fromReturn.figures("from commit"), fromBegin.figures("from call")...), nil
}

// awaitIdle waits until every worker of the crew has joined, and is woken by an enqueue unless
// it only polls.
func (s *stage) awaitIdle(ctx context.Context, crew *crew, pollOnly bool) error {
	s.server.progress.begin(s.title+": wait until workers are idle", 0)
	return s.until(ctx, crew, func() (bool, error) {
		workers, err := s.queries.CountWorkers(ctx, s.pool)
		wanted := int64(len(crew.children))
		return workers.Alive >= wanted && (pollOnly || workers.Woken >= wanted), err
	})
}

// pass lets time pass while the crew is well.
func (s *stage) pass(ctx context.Context, crew *crew, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return crew.failure()
	case <-ctx.Done():
		return ctx.Err()
	}
}
