package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

// serverFaults are those of the server and of people who are connected to it.
func serverFaults() []fault {
	faults := []fault{
		{history.ServerCrash, func(ctx context.Context, s *soak, _ *rand.Rand) (string, string, error) {
			s.restarting.Lock()
			defer s.restarting.Unlock()
			return "server", "", s.server.Restart(ctx)
		}},
		{"all sessions of the workers ended", endSessions("TRUE")},
		{"some sessions ended", endSessions("random() < 0.2")},
		{"listeners ended", endSessions("query ILIKE 'LISTEN%'")},
		{"statements cancelled", func(ctx context.Context, s *soak, _ *rand.Rand) (string, string, error) {
			return s.sessions(ctx, "pg_cancel_backend", "state = 'active'")
		}},
		{"table locked", func(ctx context.Context, s *soak, random *rand.Rand) (string, string, error) {
			return s.holding(ctx, lease/2, "LOCK TABLE holdfast.inbox IN ACCESS EXCLUSIVE MODE")
		}},
		{"pending rows locked", func(ctx context.Context, s *soak, _ *rand.Rand) (string, string, error) {
			return s.holding(ctx, lease, "SELECT FROM holdfast.inbox WHERE status = 'pending' LIMIT 50 FOR UPDATE SKIP LOCKED")
		}},
		{"rows in flight locked", func(ctx context.Context, s *soak, _ *rand.Rand) (string, string, error) {
			return s.holding(ctx, lease/2, "SELECT FROM holdfast.inbox WHERE status = 'processing' LIMIT 20 FOR UPDATE SKIP LOCKED")
		}},
		{"old versions pinned", func(ctx context.Context, s *soak, _ *rand.Rand) (string, string, error) {
			return s.holding(ctx, 3*lease, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM holdfast.queues")
		}},
		{"no connection left", exhaust},
		{"housekeeping beside the elected", func(ctx context.Context, s *soak, _ *rand.Rand) (string, string, error) {
			return s.reclaimAlso(ctx)
		}},
		{"housekeeping's lock held by an outsider", holdElection},
		{"queue paused", func(ctx context.Context, s *soak, _ *rand.Rand) (string, string, error) {
			if err := holdfast.PauseQueue(ctx, s.pool, ordinaryQueue); err != nil {
				return ordinaryQueue, "", err
			}
			pause(ctx, time.Second)
			return ordinaryQueue, "", s.insist(ctx, func() error { return holdfast.ResumeQueue(ctx, s.pool, ordinaryQueue) })
		}},
		{"statistics taken", func(ctx context.Context, s *soak, _ *rand.Rand) (string, string, error) {
			_, err := s.pool.Exec(ctx, "ANALYZE holdfast.inbox")
			return "inbox", "", err
		}},
		{"checkpoint", func(ctx context.Context, s *soak, _ *rand.Rand) (string, string, error) {
			_, err := s.pool.Exec(ctx, "CHECKPOINT")
			return "server", "", err
		}},
	}
	for _, trouble := range []struct{ kind, state string }{
		{"deadlocks", "40P01"},
		{"serialization failures", "40001"},
		{"statement timeouts", "57014"},
		{"lock timeouts", "55P03"},
		{"disk full", "53100"},
	} {
		faults = append(faults, fault{trouble.kind, func(ctx context.Context, s *soak, _ *rand.Rand) (string, string, error) {
			return s.trouble(ctx, trouble.state)
		}})
	}
	return faults
}

func endSessions(which string) func(context.Context, *soak, *rand.Rand) (string, string, error) {
	return func(ctx context.Context, s *soak, _ *rand.Rand) (string, string, error) {
		return s.sessions(ctx, "pg_terminate_backend", which)
	}
}

// sessions calls a function of Postgres on sessions of the members.
func (s *soak) sessions(ctx context.Context, function, which string) (target, detail string, err error) {
	var hit int
	err = s.pool.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE `+function+`(pid))
		FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = $1 AND (`+which+`)`, memberName).Scan(&hit)
	return fmt.Sprintf("%d sessions", hit), "", err
}

// holding keeps a transaction open after some statements.
func (s *soak) holding(ctx context.Context, d time.Duration, statements ...string) (target, detail string, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		for _, statement := range statements {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		pause(ctx, d)
		return nil
	})
	return "inbox", d.String(), err
}

// exhaust opens connections until the server has no room left.
func exhaust(ctx context.Context, s *soak, _ *rand.Rand) (target, detail string, err error) {
	config, err := pgx.ParseConfig(s.jobs)
	if err != nil {
		return "", "", err
	}
	var open []*pgx.Conn
	defer func() {
		for _, conn := range open {
			_ = conn.Close(context.WithoutCancel(ctx))
		}
	}()
	for {
		conn, err := pgx.ConnectConfig(ctx, config)
		var full *pgconn.PgError
		if errors.As(err, &full) && full.Code == "53300" {
			break
		}
		if err != nil {
			return "", "", err
		}
		open = append(open, conn)
	}
	pause(ctx, time.Second)
	return "server", fmt.Sprintf("%d connections more", len(open)), nil
}

// reclaimAlso takes back ended leases beside the worker that was elected to do it.
func (s *soak) reclaimAlso(ctx context.Context) (target, detail string, err error) {
	queue, err := domain.NewQueue(s.pool, domain.Connections(domain.MinConnections))
	if err != nil {
		return "", "", err
	}
	defer queue.Close()
	taken := 0
	for until := time.Now().Add(lease); time.Now().Before(until) && ctx.Err() == nil; {
		reclaimed, _, err := queue.Reclaim(ctx, 0)
		if err != nil {
			return "", "", err
		}
		taken += len(reclaimed)
	}
	return "inbox", fmt.Sprintf("%d jobs reclaimed", taken), nil
}

// holdElection keeps the lock of the elected housekeeper.
func holdElection(ctx context.Context, s *soak, _ *rand.Rand) (target, detail string, err error) {
	queue, err := domain.NewQueue(s.pool, domain.Connections(domain.MinConnections))
	if err != nil {
		return "", "", err
	}
	defer queue.Close()
	elected, err := queue.Elect(ctx, func(ctx context.Context) { pause(ctx, 2*lease) })
	if err == nil && !elected {
		err = errors.New("a worker held it")
	}
	return "housekeeping", "", err
}

// trouble makes a third of all statements on the inbox fail for a time.
func (s *soak) trouble(ctx context.Context, state string) (target, detail string, err error) {
	if _, err := s.pool.Exec(ctx, "INSERT INTO soak.trouble (sqlstate, share) VALUES ($1, 0.3)", state); err != nil {
		return "inbox", state, err
	}
	pause(ctx, time.Second)
	return "inbox", state, s.insist(ctx, func() error {
		_, err := s.pool.Exec(ctx, "DELETE FROM soak.trouble WHERE sqlstate = $1", state)
		return err
	})
}

// insist tries until it works: what was done must be undone.
func (s *soak) insist(ctx context.Context, undo func() error) error {
	for {
		err := undo()
		if err == nil || !pause(ctx, 100*time.Millisecond) {
			return err
		}
	}
}

// open returns a pool of the harness's own.
func open(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.ConnConfig.RuntimeParams["application_name"] = "soak"
	return pgxpool.NewWithConfig(ctx, config)
}
