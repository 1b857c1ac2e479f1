package bench

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// statementWork is how long the runs of a statement took, as its client sees it, and what they
// did.
type statementWork struct {
	Times *histogram    `json:"times"`
	Spent time.Duration `json:"spent"` // In all.
	Rows  int64         `json:"rows"`
}

func newStatementWork() statementWork {
	return statementWork{Times: newHistogram()}
}

func (w *statementWork) add(other statementWork) {
	w.Times.merge(other.Times)
	w.Spent += other.Spent
	w.Rows += other.Rows
}

// stopwatch is a tracer that counts trips, and times the batches by the statement in them that
// has a name. The product sends its set statements in batches, behind what plans them.
type stopwatch struct {
	trips

	mutex sync.Mutex
	works map[string]statementWork
}

var (
	_ pgx.QueryTracer = (*stopwatch)(nil)
	_ pgx.BatchTracer = (*stopwatch)(nil)
)

func newStopwatch() *stopwatch {
	return &stopwatch{works: map[string]statementWork{}}
}

// batchBegan is the key of what TraceBatchStart tells TraceBatchEnd.
type batchBegan struct{}

// batchRun is a batch under way, on one connection and so in one goroutine.
type batchRun struct {
	began time.Time
	name  string
	rows  int64
}

// TraceBatchStart starts the clock.
func (s *stopwatch) TraceBatchStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	ctx = s.trips.TraceBatchStart(ctx, conn, data)
	run := &batchRun{began: time.Now()}
	for _, query := range data.Batch.QueuedQueries {
		if name := statementName(query.SQL); !strings.HasPrefix(name, "PlanBy") {
			run.name = name
		}
	}
	return context.WithValue(ctx, batchBegan{}, run)
}

// TraceBatchQuery adds the rows of the statement up.
func (s *stopwatch) TraceBatchQuery(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	if run, ok := ctx.Value(batchBegan{}).(*batchRun); ok && statementName(data.SQL) == run.name {
		run.rows += data.CommandTag.RowsAffected()
	}
}

// TraceBatchEnd stops the clock.
func (s *stopwatch) TraceBatchEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchEndData) {
	s.trips.TraceBatchEnd(ctx, conn, data)
	s.finish(ctx, data.Err)
}

// finish notes a batch that succeeded.
func (s *stopwatch) finish(ctx context.Context, err error) {
	run, ok := ctx.Value(batchBegan{}).(*batchRun)
	if !ok || err != nil {
		return
	}
	took := time.Since(run.began)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	work, known := s.works[run.name]
	if !known {
		work = newStatementWork()
	}
	work.Times.record(took)
	work.Spent += took
	work.Rows += run.rows
	s.works[run.name] = work
}

// work is what a statement did so far.
func (s *stopwatch) work(name string) statementWork {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if work, known := s.works[name]; known {
		return work
	}
	return newStatementWork()
}

// statementName is the name that sqlc leaves at the beginning of a statement, or "".
func statementName(sql string) string {
	rest, _ := strings.CutPrefix(sql, "-- name: ")
	if len(rest) == len(sql) {
		return ""
	}
	name, _, _ := strings.Cut(rest, " ")
	return name
}
