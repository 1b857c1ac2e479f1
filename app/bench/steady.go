package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/db/bench"
)

const (
	producers     = 2   // Connections that enqueue.
	producerBatch = 200 // Jobs of one statement of theirs, at most.
	leastTick     = time.Millisecond
	pacedTick     = 10 * time.Millisecond // At a pace they add sets, too.
	latencySample = 100_000
	highRate      = 60_000 // Jobs a second, for the room to make sure of.
)

// steady is the everyday question: producers and a worker at the same time, for long enough
// that vacuum, checkpoints and archive days have their part in it.
var steady = scenario{
	name:  "steady",
	about: "producers and one worker together, for a time",
	trials: func(o Options) []trial {
		duration := cmp.Or(o.Duration, bySize(o, 3*time.Second, time.Minute))
		name := "all it takes"
		if o.Share > 0 {
			name = fmt.Sprintf("at %.0f %%", 100*o.Share)
		}
		return []trial{{
			name:  name,
			needs: needs{workers: 1, producers: producers, jobs: highRate * int(duration.Seconds()), payload: o.Payload},
			run:   func(ctx context.Context, s *stage) ([]Figure, error) { return s.steady(ctx, duration) },
		}}
	},
}

// steady offers all jobs that the worker takes, or a share of those that it took in a shorter
// run.
func (s *stage) steady(ctx context.Context, duration time.Duration) ([]Figure, error) {
	if s.Share == 0 {
		return s.flow(ctx, nil, duration)
	}
	most, err := s.greatestRate(ctx, max(duration/4, 2*time.Second).Truncate(time.Second))
	if err != nil {
		return nil, err
	}
	figures, err := s.flow(ctx, func() *pace { return &pace{perSecond: s.Share * most / producers} }, duration)
	return append([]Figure{{"greatest rate", "jobs/s", most}, {"offered", "jobs/s", s.Share * most}}, figures...), err
}

// greatestRate is what a worker takes at most, found on a database of its own.
func (s *stage) greatestRate(ctx context.Context, duration time.Duration) (rate float64, err error) {
	other, err := s.server.newStage(ctx, s.Options, s.title+", at most")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, other.close()) }()
	figures, err := other.flow(ctx, nil, duration)
	for _, figure := range figures {
		if figure.Name == "rate" {
			rate = figure.Value
		}
	}
	return rate, err
}

// flow runs producers and a worker for a time, and lets the worker finish what is left. Every
// producer has a pace of its own; without one they offer as much as is taken.
func (s *stage) flow(ctx context.Context, newPace func() *pace, duration time.Duration) ([]Figure, error) {
	settings := s.fast()
	settings.Wait = waitEnqueue
	crew, err := s.hire(ctx, settings, 1)
	if err != nil {
		return nil, err
	}
	s.server.progress.begin(s.title, int(duration.Seconds()))
	m, err := s.measure(ctx, crew)
	if err != nil {
		return nil, err
	}
	since, err := s.queries.ServerClock(ctx, s.pool)
	if err != nil {
		return nil, err
	}
	jobs, err := s.produce(ctx, crew, newPace, duration)
	if err != nil {
		return nil, err
	}
	depth := jobs - crew.handled()
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
	costs, err := all.costs(jobs)
	if err != nil {
		return nil, err
	}
	if err := s.checkArchived(ctx, jobs); err != nil {
		return nil, err
	}
	figures, err := s.flowFigures(ctx, since, jobs, depth, int(duration.Seconds()))
	return append(append(figures, all.Wait.figures("pickup")...), costs...), err
}

// produce enqueues for a time and tells how many jobs.
func (s *stage) produce(ctx context.Context, crew *crew, newPace func() *pace, duration time.Duration) (int, error) {
	pool, err := s.openAll(ctx, producers)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	var enqueued atomic.Int64
	mostWaiting := bySize(s.Options, 2_000, 20_000) // With more, producers hold back.
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for i := range producers {
		jobs := newJobSource(s.Seed*producers+int64(i), s.Payload)
		tick, next := leastTick, func() int {
			return min(producerBatch, mostWaiting-(int(enqueued.Load())-crew.handled()))
		}
		if newPace != nil {
			paced := newPace()
			tick, next = pacedTick, func() int { return paced.due(time.Since(began)) }
		}
		group.Go(func() error {
			return eachTick(ctx, tick, duration, crew, next, func(n int) error {
				if i == 0 { // One of them, because the progress is not for concurrent use.
					s.server.progress.at(int(time.Since(began).Seconds()))
				}
				enqueued.Add(int64(n))
				_, err := holdfast.EnqueueMany(ctx, pool, jobs.batch(n, time.Now())...)
				return err
			})
		})
	}
	err = group.Wait()
	return int(enqueued.Load()), err
}

// eachTick asks at every tick how much there is to do, and does it, for a time and while the crew
// is well.
func eachTick(ctx context.Context, tick, duration time.Duration, crew *crew, next func() int, act func(n int) error) error {
	end := time.After(duration)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		if err := crew.failure(); err != nil {
			return err
		}
		if n := next(); n > 0 {
			if err := act(n); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end:
			return nil
		case <-ticker.C:
		}
	}
}

// flowFigures read from the archive how fast and how late jobs were completed. A latency ends
// where the completing statement begins: its commit comes on top.
func (s *stage) flowFigures(ctx context.Context, since time.Time, jobs, depth, seconds int) ([]Figure, error) {
	rows, err := s.queries.CompletionsPerSecond(ctx, s.pool, since)
	if err != nil {
		return nil, err
	}
	perSecond := make([]int64, seconds)
	for _, row := range rows {
		if int(row.Second) < seconds { // The rest was completed when the producers had stopped.
			perSecond[row.Second] = row.Jobs
		}
	}
	sample, err := s.queries.SampleLatencies(ctx, s.pool, bench.SampleLatenciesParams{
		Stride: int64(jobs/latencySample + 1), Since: since, Most: latencySample,
	})
	if err != nil {
		return nil, err
	}
	latencies := newHistogram()
	for _, microseconds := range sample {
		latencies.record(time.Duration(microseconds) * time.Microsecond)
	}
	window := min(10, max(1, seconds/3))
	return append([]Figure{
		{"jobs", "", float64(jobs)},
		{"rate", "jobs/s", mean(perSecond)},
		{fmt.Sprintf("rate of the first %d s", window), "jobs/s", mean(perSecond[:window])},
		{fmt.Sprintf("rate of the last %d s", window), "jobs/s", mean(perSecond[seconds-window:])},
		{"left at the end", "", float64(depth)},
	}, latencies.figures("completion")...), nil
}

func mean(values []int64) float64 {
	sum := int64(0)
	for _, value := range values {
		sum += value
	}
	return float64(sum) / float64(len(values))
}
