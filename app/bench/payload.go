package bench

import (
	"context"

	"github.com/holdfast-pg/holdfast"
)

// payloads asks what the size of a payload costs: the drain of small, of middling and of large
// ones. Postgres keeps the last outside of the row (TOAST).
var payloads = scenario{
	name:  "payload",
	about: "one worker empties a full queue, with larger and larger payloads",
	trials: func(o Options) []trial {
		jobs := o.jobs(2_000, 50_000)
		var trials []trial
		for _, form := range []struct {
			name  string
			bytes int
		}{{"128 B", 128}, {"2 KB", 2 << 10}, {"16 KB", 16 << 10}} {
			trials = append(trials, trial{
				name:  form.name,
				needs: needs{workers: 1, producers: preloaders, jobs: jobs, payload: form.bytes},
				run: func(ctx context.Context, s *stage) ([]Figure, error) {
					s.jobs = newJobSource(s.Seed, form.bytes)
					return s.drain(ctx, s.fast(), holdfast.RetentionArchive, jobs)
				},
			})
		}
		return trials
	},
}
