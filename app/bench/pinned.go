package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// pinned asks what a transaction that stays open does to a queue: until it ends, vacuum can
// clean nothing away that was deleted since it began.
var pinned = scenario{
	name:  "pinned",
	about: "jobs at an even pace, without and with a transaction that stays open",
	trials: func(o Options) []trial {
		duration := cmp.Or(o.Duration, bySize(o, 5*time.Second, 10*time.Minute))
		rate := bySize(o, 500, 5_000)
		var clean baseline
		with := func(name string, pins bool, duration time.Duration) trial {
			return trial{
				name:  name,
				needs: needs{workers: 1, producers: producers + 1, jobs: rate * int(duration.Seconds()), payload: o.Payload},
				run: func(ctx context.Context, s *stage) ([]Figure, error) {
					figures, err := s.load(ctx, rate, duration, pins)
					if err != nil {
						return nil, err
					}
					if !pins {
						clean.keep(figures)
						return figures, nil
					}
					figures = append(figures, clean.ratio(figures, "claim p50", "claim p50 to clean")...)
					return append(figures, clean.ratio(figures, "claim p99", "claim p99 to clean")...), nil
				},
			}
		}
		return []trial{with("clean", false, min(duration, time.Minute)), with("pinned", true, duration)}
	},
}

// load offers jobs at a rate to one worker, for a time, and lets it finish what is left when
// nothing is pinned any more.
func (s *stage) load(ctx context.Context, rate int, duration time.Duration, pins bool) ([]Figure, error) {
	settings := s.fast()
	settings.Wait = waitEnqueue
	crew, err := s.hire(ctx, settings, 1)
	if err != nil {
		return nil, err
	}
	m, err := s.measure(ctx, crew)
	if err != nil {
		return nil, err
	}
	unpin := func() error { return nil }
	if pins {
		if unpin, err = s.pin(ctx); err != nil {
			return nil, err
		}
	}
	since, err := s.queries.ServerClock(ctx, s.pool)
	if err != nil {
		return nil, errors.Join(err, unpin())
	}
	s.server.progress.begin(s.title, int(duration.Seconds()))
	newPace := func() *pace { return &pace{perSecond: float64(rate) / producers} }
	jobs, err := s.produce(ctx, crew, newPace, duration)
	if err != nil {
		return nil, errors.Join(err, unpin())
	}
	handled := crew.handled()
	rows, err := s.queries.InboxRows(ctx, s.pool)
	if err := errors.Join(err, unpin()); err != nil {
		return nil, err
	}
	all, err := s.finishLoad(ctx, m, crew, jobs)
	if err != nil {
		return nil, err
	}
	figures, err := s.flowFigures(ctx, since, jobs, jobs-handled, int(duration.Seconds()))
	figures = append(figures,
		Figure{"handled of those offered", "%", 100 * float64(handled) / float64(jobs)},
		Figure{"dead rows at the end", "", float64(rows.Dead)},
	)
	return append(figures, all...), err
}

// finishLoad has the crew finish, and returns what that and all before it took.
func (s *stage) finishLoad(ctx context.Context, m *measurement, crew *crew, jobs int) ([]Figure, error) {
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
	figures := append(all.Claims.Times.figures("claim"), all.Wait.figures("pickup")...)
	return append(figures, costs...), s.checkArchived(ctx, jobs)
}

// pin opens a transaction that keeps all versions of all rows from now on. It fails at the end
// if the server has ended it before.
func (s *stage) pin(ctx context.Context) (unpin func() error, err error) {
	tx, err := s.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return nil, err
	}
	if _, err := s.queries.PinSnapshot(ctx, tx); err != nil {
		return nil, errors.Join(err, tx.Rollback(ctx))
	}
	return func() error {
		if err := tx.Commit(ctx); err != nil {
			return fmt.Errorf("end the transaction that stayed open: %w", err)
		}
		return nil
	}, nil
}
