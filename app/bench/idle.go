package bench

import (
	"cmp"
	"context"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

const (
	idlers = 16 // Worker processes of idle.

	// tellingTime is how long a session that does nothing may keep its commits to itself.
	// Source: PGSTAT_IDLE_INTERVAL in src/backend/utils/activity/pgstat.c.
	tellingTime = 10 * time.Second
)

// idle asks what workers cost the server that have nothing to do.
var idle = scenario{
	name:  "idle",
	about: "sixteen worker processes have nothing to do, for a time",
	trials: func(o Options) []trial {
		duration := cmp.Or(o.Duration, bySize(o, 5*time.Second, time.Minute))
		// In the full size every commit of the joining has been told by then, and every worker's
		// view of the others was taken when all were there.
		settle := bySize(o, time.Second, tellingTime+time.Second)
		return []trial{{
			name:  "notified",
			needs: needs{workers: idlers, each: domain.MinConnections + 1},
			run:   func(ctx context.Context, s *stage) ([]Figure, error) { return s.idle(ctx, settle, duration) },
		}}
	},
}

// quiet is what was counted at one moment of idleness.
type quiet struct {
	at      time.Time
	sent    sent
	commits int64
}

func (s *stage) idle(ctx context.Context, settle, duration time.Duration) ([]Figure, error) {
	settings := s.fast()
	settings.Connections = domain.MinConnections // So that a server with 100 connections will do; none is busy.
	crew, err := s.hire(ctx, settings, idlers)
	if err != nil {
		return nil, err
	}
	m, err := s.measure(ctx, crew)
	if err != nil {
		return nil, err
	}
	if err := s.awaitIdle(ctx, crew, false); err != nil {
		return nil, err
	}
	s.pool.Reset() // So that none of the bench's own commits is told later.
	if err := s.pass(ctx, crew, settle); err != nil {
		return nil, err
	}
	s.server.progress.begin(s.title, 0)
	before, err := s.count(ctx, crew)
	if err != nil {
		return nil, err
	}
	if err := s.pass(ctx, crew, duration); err != nil {
		return nil, err
	}
	after, err := s.count(ctx, crew)
	if err != nil {
		return nil, err
	}
	sessions, err := s.queries.CountSessions(ctx, s.server.pool, s.name)
	if err != nil {
		return nil, err
	}
	if _, err := m.stop(ctx); err != nil {
		return nil, err
	}
	all, err := m.end(ctx)
	if err != nil {
		return nil, err
	}
	figures := quietFigures(before, after)
	if settle > tellingTime {
		figures = append(figures, Figure{"commits", "/s", float64(after.commits-before.commits) / after.at.Sub(before.at).Seconds()})
	}
	return append(figures,
		Figure{"connections", "/worker", float64(sessions) / idlers},
		Figure{"peak memory", "MB/worker", float64(all.PeakMemory) / (1 << 20) / idlers}), nil
}

// count counts on a connection to another database, so that the bench adds nothing.
func (s *stage) count(ctx context.Context, crew *crew) (now quiet, err error) {
	if now.sent, err = crew.count(ctx); err != nil {
		return now, err
	}
	now.at = time.Now()
	now.commits, err = s.queries.CountCommits(ctx, s.server.pool, s.name)
	return now, err
}

// quietFigures are what happened between two moments.
func quietFigures(before, after quiet) []Figure {
	seconds := after.at.Sub(before.at).Seconds()
	figure := func(name string, before, after int64) Figure {
		return Figure{name, "/s and worker", float64(after-before) / seconds / idlers}
	}
	return []Figure{
		{"workers", "", idlers},
		figure("statements", before.sent.Statements, after.sent.Statements),
		figure("pings", before.sent.Pings, after.sent.Pings),
		figure("round trips", before.sent.Trips, after.sent.Trips),
		figure("transactions", before.sent.Transactions, after.sent.Transactions),
	}
}
