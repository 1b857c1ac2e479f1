package bench

import (
	"context"
	"fmt"
	"time"
)

// slots asks what more handlers at once bring, in one process and in several, when each takes
// a millisecond.
var slots = scenario{
	name:  "slots",
	about: "jobs of 1 ms, with more and more handlers at once",
	trials: func(o Options) []trial {
		var trials []trial
		for _, form := range []struct{ processes, slots int }{{1, 4}, {1, 16}, {1, 64}, {1, 256}, {2, 32}, {4, 16}} {
			// Jobs for ten seconds, if the server keeps up.
			jobs := min(o.jobs(2_000, 200_000), form.processes*form.slots*10_000)
			trials = append(trials, trial{
				name:  fmt.Sprintf("%d × %d", form.processes, form.slots),
				needs: needs{workers: form.processes, producers: preloaders, jobs: jobs, payload: o.Payload},
				run: func(ctx context.Context, s *stage) ([]Figure, error) {
					if err := s.preload(ctx, jobs); err != nil {
						return nil, err
					}
					settings := workerSettings{Concurrency: form.slots, Sleep: time.Millisecond}
					figures, err := s.workOff(ctx, settings, form.processes, jobs)
					if err == nil {
						err = s.checkArchived(ctx, jobs)
					}
					return figures, err
				},
			})
		}
		return trials
	},
}
