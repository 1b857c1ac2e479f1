package bench

import (
	"context"

	"github.com/holdfast-pg/holdfast"
)

// observed asks what metrics cost: the same drain without and with them. Jobs that do nothing make
// the most of it.
var observed = scenario{
	name:  "observed",
	about: "drain to the archive, without and with metrics",
	trials: func(o Options) []trial {
		jobs := o.jobs(5_000, 200_000)
		with := func(name string, metrics bool) trial {
			return trial{
				name:  name,
				needs: needs{workers: 1, producers: preloaders, jobs: jobs, payload: o.Payload},
				run: func(ctx context.Context, s *stage) ([]Figure, error) {
					settings := s.fast()
					settings.Observed = metrics
					return s.drain(ctx, settings, holdfast.RetentionArchive, jobs)
				},
			}
		}
		return []trial{with("off", false), with("metrics", true)}
	},
}
