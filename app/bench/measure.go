package bench

import (
	"context"
	"fmt"
	"time"
)

// quietTimeout is how long the sessions of a database may take to end.
const quietTimeout = 15 * time.Second

// Figure is one number of a report.
type Figure struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
}

// measurement is what a crew does between two moments, and what that costs.
type measurement struct {
	stage   *stage
	crew    *crew
	began   time.Time
	wal     int64 // The position in the log at the beginning; from the stop on, the bytes since then.
	commits int64 // At the beginning, all of them
	own     int64 // and the bench's own.
}

// measure starts the crew, and the clock.
func (s *stage) measure(ctx context.Context, crew *crew) (m *measurement, err error) {
	m = &measurement{stage: s, crew: crew}
	if m.commits, err = s.commits(ctx); err != nil {
		return nil, err
	}
	m.own = s.own.ended.Load()
	if m.wal, err = s.queries.WALPosition(ctx, s.server.pool); err != nil {
		return nil, err
	}
	m.began = time.Now()
	return m, crew.start()
}

// stop stops the clock. The crew goes on, and may be asked to work off more.
func (m *measurement) stop(ctx context.Context) (time.Duration, error) {
	elapsed := time.Since(m.began)
	position, err := m.stage.queries.WALPosition(ctx, m.stage.server.pool)
	m.wal = position - m.wal
	return elapsed, err
}

// totals are what a crew did, and what that cost.
type totals struct {
	*workReport

	Log     int64 // Bytes that the server wrote, for whomever.
	Commits int64 // In the stage's database, without those of the bench's own connections.
}

// end ends the crew. The clock must have been stopped.
func (m *measurement) end(ctx context.Context) (totals, error) {
	done, err := m.crew.stop(ctx)
	if err != nil {
		return totals{}, err
	}
	commits, err := m.stage.commits(ctx)
	own := m.stage.own.ended.Load() - m.own
	return totals{workReport: done, Log: m.wal, Commits: commits - m.commits - own}, err
}

// costs are the figures of every scenario that works off jobs: what each of them cost. That
// their handlers ran once is made sure of.
func (t totals) costs(jobs int) ([]Figure, error) {
	if t.Handled != jobs {
		return nil, fmt.Errorf("%d jobs were enqueued and their handlers ran %d times: a lease was lost, or a job", jobs, t.Handled)
	}
	each := float64(jobs)
	return []Figure{
		{"log", "bytes/job", float64(t.Log) / each},
		{"commits", "/job", float64(t.Commits) / each},
		{"round trips", "/job", float64(t.Trips) / each},
		{"peak memory", "MB", float64(t.PeakMemory) / (1 << 20)},
		{"processor", "s", t.CPU.Seconds()},
	}, nil
}

// commits counts the commits in the stage's database. A session may keep its own to itself
// for a second, so all of them are ended first.
func (s *stage) commits(ctx context.Context) (int64, error) {
	s.pool.Reset()
	ctx, cancel := context.WithTimeoutCause(ctx, quietTimeout, fmt.Errorf("sessions of %s are left after %s", s.name, quietTimeout))
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		sessions, err := s.queries.CountSessions(ctx, s.server.pool, s.name)
		if err != nil {
			return 0, err
		}
		if sessions == 0 {
			return s.queries.CountCommits(ctx, s.server.pool, s.name)
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-again.C:
		}
	}
}

// workOff has a crew work off the jobs that wait, and tells how fast and at what cost.
func (s *stage) workOff(ctx context.Context, settings workerSettings, processes, jobs int) ([]Figure, error) {
	crew, err := s.hire(ctx, settings, processes)
	if err != nil {
		return nil, err
	}
	s.server.progress.begin(s.title+": work off", jobs)
	m, err := s.measure(ctx, crew)
	if err != nil {
		return nil, err
	}
	if err := s.awaitDone(ctx, crew, jobs); err != nil {
		return nil, err
	}
	elapsed, err := m.stop(ctx)
	if err != nil {
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
	figures := append([]Figure{{"jobs", "", float64(jobs)}, {"rate", "jobs/s", float64(jobs) / elapsed.Seconds()}}, costs...)
	return append(figures, all.Wait.figures("wait")...), nil
}
