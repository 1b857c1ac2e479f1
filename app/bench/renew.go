package bench

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// claimsReported is how long after the last claim its statistics have come: a session that is
// idle reports its own within 10 s. Claims are updates too, and never heap-only.
const claimsReported = 11 * time.Second

// renew asks what it costs to hold many jobs for long. The handlers wait until the end, so
// that nothing but renewals changes the inbox meanwhile.
var renew = scenario{
	name:  "renew",
	about: "renewals of long jobs, without and with a transaction that stays open",
	trials: func(o Options) []trial {
		jobs := o.jobs(500, 10_000)
		// Renewed at each third of a lease: several times.
		lease := bySize(o, 3*time.Second, 15*time.Second)
		window := cmp.Or(o.Duration, bySize(o, 3*time.Second, 30*time.Second))
		with := func(name string, pins bool) trial {
			return trial{
				name:  name,
				needs: needs{workers: 1, producers: preloaders + 1, jobs: jobs, payload: o.Payload},
				run: func(ctx context.Context, s *stage) ([]Figure, error) {
					return s.renew(ctx, jobs, lease, window, pins)
				},
			}
		}
		return []trial{with("clean", false), with("pinned", true)}
	},
}

// renew has one worker hold jobs, watches it for a time, and lets it complete them.
func (s *stage) renew(ctx context.Context, jobs int, lease, window time.Duration, pins bool) ([]Figure, error) {
	if err := s.preload(ctx, jobs); err != nil {
		return nil, err
	}
	crew, err := s.hire(ctx, workerSettings{Concurrency: jobs, Lease: lease, Hold: true}, 1)
	if err != nil {
		return nil, err
	}
	s.server.progress.begin(s.title+": claim", 0)
	m, err := s.measure(ctx, crew)
	if err != nil {
		return nil, err
	}
	err = s.until(ctx, crew, func() (bool, error) {
		claimed, err := s.queries.CountClaimed(ctx, s.pool)
		return claimed == int64(jobs), err
	})
	if err != nil {
		return nil, err
	}
	figures, err := s.watchRenewals(ctx, crew, window, pins)
	if err != nil {
		return nil, err
	}
	if err := crew.finish(); err != nil {
		return nil, err
	}
	s.server.progress.begin(s.title+": complete", jobs)
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
	if _, err := all.costs(jobs); err != nil { // A lease that was lost shows here.
		return nil, err
	}
	return append(all.Renewals.roundFigures(jobs), figures...), s.checkArchived(ctx, jobs)
}

// watchRenewals tells what becomes of the rows and how much log is written meanwhile, for
// each renewal.
func (s *stage) watchRenewals(ctx context.Context, crew *crew, window time.Duration, pins bool) (figures []Figure, err error) {
	unpin := func() error { return nil }
	if pins {
		if unpin, err = s.pin(ctx); err != nil {
			return nil, err
		}
	}
	figures, err = s.renewalFigures(ctx, crew, window)
	return figures, errors.Join(err, unpin())
}

func (s *stage) renewalFigures(ctx context.Context, crew *crew, window time.Duration) ([]Figure, error) {
	s.server.progress.begin(s.title+": renew", 0)
	if err := s.pass(ctx, crew, bySize(s.Options, time.Second, claimsReported)); err != nil {
		return nil, err
	}
	rows, err := s.queries.InboxRows(ctx, s.pool)
	if err != nil {
		return nil, err
	}
	log, err := s.queries.WALPosition(ctx, s.server.pool)
	if err != nil {
		return nil, err
	}
	if err := s.pass(ctx, crew, window); err != nil {
		return nil, err
	}
	logEnd, err := s.queries.WALPosition(ctx, s.server.pool)
	if err != nil {
		return nil, err
	}
	rowsEnd, err := s.queries.InboxRows(ctx, s.pool)
	if err != nil {
		return nil, err
	}
	renewed := float64(rowsEnd.Updates - rows.Updates)
	if renewed == 0 {
		return nil, errors.New("the statistics saw no renewal: run it for longer")
	}
	return []Figure{
		{"renewals watched", "", renewed},
		{"heap-only updates", "%", 100 * float64(rowsEnd.HotUpdates-rows.HotUpdates) / renewed},
		{"log", "bytes/renewal", float64(logEnd-log) / renewed},
		{"dead rows at the end", "", float64(rowsEnd.Dead)},
	}, nil
}

// roundFigures say how long the statements took that renew every lease once.
func (w statementWork) roundFigures(jobs int) []Figure {
	if w.Rows == 0 {
		return nil
	}
	milliseconds := float64(w.Spent.Microseconds()) / 1000
	return append([]Figure{
		{"rounds", "", float64(w.Rows) / float64(jobs)},
		{"round", "ms", milliseconds * float64(jobs) / float64(w.Rows)},
	}, w.Times.figures("statement")...)
}
