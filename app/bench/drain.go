package bench

import (
	"context"

	"github.com/holdfast-pg/holdfast"
)

// drain is the plain question: a full queue, one worker, handlers that do nothing. What is
// left of the time is Holdfast's own.
var drain = scenario{
	name:  "drain",
	about: "one worker empties a full queue of jobs that do nothing",
	trials: func(o Options) []trial {
		jobs := o.jobs(5_000, 200_000)
		with := func(mode holdfast.RetentionMode) trial {
			return trial{
				name:  string(mode),
				needs: needs{workers: 1, producers: preloaders, jobs: jobs, payload: o.Payload},
				run:   func(ctx context.Context, s *stage) ([]Figure, error) { return s.drain(ctx, s.fast(), mode, jobs) },
			}
		}
		return []trial{with(holdfast.RetentionArchive), with(holdfast.RetentionDrop)}
	},
}

func (s *stage) drain(ctx context.Context, settings workerSettings, mode holdfast.RetentionMode, jobs int) ([]Figure, error) {
	if err := s.setQueue(ctx, holdfast.QueueChange{RetentionMode: &mode}); err != nil {
		return nil, err
	}
	if err := s.preload(ctx, jobs); err != nil {
		return nil, err
	}
	figures, err := s.workOff(ctx, settings, 1, jobs)
	if err == nil && mode == holdfast.RetentionArchive {
		err = s.checkArchived(ctx, jobs)
	}
	return figures, err
}
