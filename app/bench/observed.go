package bench

import (
	"context"

	"github.com/holdfast-pg/holdfast"
)

// observed asks what logs, metrics and traces cost: the same drain without and with them. Jobs that do
// nothing make the most of it.
var observed = scenario{
	name:  "observed",
	about: "drain to the archive, without and with logs, metrics and traces",
	trials: func(o Options) []trial {
		jobs := o.jobs(5_000, 200_000)
		with := func(name string, observed bool, traced float64) trial {
			return trial{
				name:  name,
				needs: needs{workers: 1, producers: preloaders, jobs: jobs, payload: o.Payload},
				run: func(ctx context.Context, s *stage) ([]Figure, error) {
					settings := s.fast()
					settings.Observed, settings.Traced = observed, traced
					return s.drain(ctx, settings, holdfast.RetentionArchive, jobs)
				},
			}
		}
		return []trial{with("off", false, 0), with("metrics", true, 0), with("1 % traced", true, 0.01), with("all traced", true, 1)}
	},
}
