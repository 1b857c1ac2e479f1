package worker

import (
	"context"
	"errors"

	"github.com/holdfast-pg/holdfast/domain"
)

// beatLoop says that the worker lives, and passes on what the registry answers.
func (s *session) beatLoop(ctx context.Context, stopClaiming context.CancelCauseFunc) {
	s.every(ctx, s.Heartbeat, func(ctx context.Context) {
		s.tick(&s.beatPulse)
		// A beat that hangs must not be the reason why the worker is taken for dead.
		call, cancel := context.WithTimeout(ctx, s.Heartbeat)
		defer cancel()
		status, err := s.queue.Beat(call, domain.Registration{ID: s.id, Queues: s.Queues, Metadata: s.facts()})
		switch {
		case errors.Is(err, domain.ErrWorkerUnknown) || status == domain.WorkerDead:
			stopClaiming(errDeclaredDead)
		case err != nil && ctx.Err() == nil:
			s.log.Error("cannot beat, trying again", "error", err)
		case status == domain.WorkerDraining:
			stopClaiming(errDrainOrdered)
		}
	})
}
