package bench

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/holdfast-pg/holdfast"
)

const (
	orderedKeys = 10_000
	hotKey      = 0 // The number of the key that most jobs have.
	zipfPower   = 1.1
)

// ordered asks what the order within a key costs, and whether one busy key holds up the
// others: the same jobs in a queue without order are the measure.
var ordered = scenario{
	name:  "ordered",
	about: "jobs of few busy keys and many quiet ones, without and with order",
	trials: func(o Options) []trial {
		jobs := o.jobs(1_000, 50_000)
		var trials []trial
		for _, traffic := range []struct {
			name string
			draw func(seed int64) func(random *rand.Rand) uint64
		}{{"zipf", zipfKeys}, {"hot key", halfHot}} {
			var free baseline
			with := func(name string, order bool) trial {
				return trial{
					name:  traffic.name + ", " + name,
					needs: needs{workers: 1, producers: preloaders, jobs: jobs, payload: o.Payload},
					run: func(ctx context.Context, s *stage) ([]Figure, error) {
						s.jobs.draw = traffic.draw(s.Seed)
						figures, err := s.runOrdered(ctx, jobs, order)
						if err != nil {
							return nil, err
						}
						if !order {
							free.keep(figures)
							return figures, nil
						}
						figures = append(figures, free.ratio(figures, "rate", "rate to no order")...)
						return append(figures, free.ratio(figures, "rate off the hot key", "rate off the hot key to no order")...), nil
					},
				}
			}
			trials = append(trials, with("no order", false), with("ordered", true))
		}
		return trials
	},
}

// zipfKeys draws the key of rank n with a probability in proportion to 1/(n+1)^1.1.
func zipfKeys(seed int64) func(*rand.Rand) uint64 {
	zipf := rand.NewZipf(rand.New(rand.NewPCG(uint64(seed), 1)), zipfPower, 1, orderedKeys-1)
	return func(*rand.Rand) uint64 { return zipf.Uint64() }
}

// halfHot draws one key half of the time, and the others equally often.
func halfHot(int64) func(*rand.Rand) uint64 {
	return func(random *rand.Rand) uint64 {
		if random.IntN(2) == 0 {
			return hotKey
		}
		return 1 + random.Uint64N(orderedKeys-1)
	}
}

// runOrdered works the jobs off and checks their order, if they are to have one.
func (s *stage) runOrdered(ctx context.Context, jobs int, order bool) ([]Figure, error) {
	if err := s.setQueue(ctx, holdfast.QueueChange{Ordered: &order}); err != nil {
		return nil, err
	}
	if err := s.preload(ctx, jobs); err != nil {
		return nil, err
	}
	worked, err := s.workOff(ctx, s.fast(), 1, jobs)
	if err != nil {
		return nil, err
	}
	if err := s.checkArchived(ctx, jobs); err != nil {
		return nil, err
	}
	outOfOrder, err := s.queries.CountOutOfOrder(ctx, s.pool)
	if err != nil {
		return nil, err
	}
	if order && outOfOrder != 0 {
		return nil, fmt.Errorf("%d jobs were claimed or completed before an earlier one of their key", outOfOrder)
	}
	off, err := s.queries.CompletedOffKey(ctx, s.pool, keyOf(hotKey))
	if err != nil {
		return nil, err
	}
	figures := append(worked[:2:2],
		Figure{"jobs off the hot key", "", float64(off.Jobs)},
		Figure{"rate off the hot key", "jobs/s", float64(off.Jobs) / (float64(max(off.Microseconds, 1)) / 1e6)},
		Figure{"jobs out of order", "", float64(outOfOrder)},
	)
	return append(figures, worked[2:]...), nil
}
