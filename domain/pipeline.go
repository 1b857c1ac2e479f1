package domain

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-pg/holdfast/gen"
)

// pipeline is a DBTX that sends each statement with others around it, in one round trip. They
// are one transaction: an implicit one, unless they begin and commit one themselves. After an
// error inside of that the pool closes the connection.
type pipeline struct {
	db     batcher
	before []statement
	after  []statement
}

// batcher is a *pgxpool.Pool or a pgx.Tx.
type batcher interface {
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// statement is a statement as the generated code would send it.
type statement struct {
	sql  string
	args []any
}

// newPlanned returns a DBTX that sends PlanByIndex in front of every statement over a set.
// With the planner's statistics wrong, as they are on a fresh table, a set joined to the
// inbox is otherwise a sequential scan.
func newPlanned(db batcher) pipeline {
	return pipeline{db: db, before: []statement{planByIndex}}
}

var planByIndex = record(func(db DBTX) error { return gen.New().PlanByIndex(context.Background(), db) })

// Exec runs a statement that returns no rows.
func (p pipeline) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	results, err := p.send(ctx, sql, args)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	tag, err := results.Exec()
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return tag, err
}

// Query runs a statement that returns rows. The rows end only when the transaction has
// committed, so that rows.Err tells a lost commit.
func (p pipeline) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	results, err := p.send(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	rows, err := results.Query()
	if err != nil {
		_ = results.Close()
		return nil, err
	}
	return &pipelineRows{Rows: rows, results: results}, nil
}

// QueryRow runs a statement on one row, which needs nothing around it.
func (p pipeline) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return p.db.QueryRow(ctx, sql, args...)
}

// send sends everything and reads the answers up to that of the statement given.
func (p pipeline) send(ctx context.Context, sql string, args []any) (pgx.BatchResults, error) {
	var batch pgx.Batch
	for _, each := range p.before {
		batch.Queue(each.sql, each.args...)
	}
	batch.Queue(sql, args...)
	for _, each := range p.after {
		batch.Queue(each.sql, each.args...)
	}
	results := p.db.SendBatch(ctx, &batch)
	for range p.before {
		if _, err := results.Exec(); err != nil {
			_ = results.Close()
			return nil, err
		}
	}
	return results, nil
}

// pipelineRows are the rows of one statement of a pipeline.
type pipelineRows struct {
	pgx.Rows
	results pgx.BatchResults
	closed  bool
	err     error
}

func (r *pipelineRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.Close()
	return false
}

// Close reads the pipeline to its end, where the transaction commits. It may be called again.
// The driver's may not: after an error it would touch a connection that is somebody else's.
func (r *pipelineRows) Close() {
	r.Rows.Close()
	if r.closed {
		return
	}
	r.closed = true
	if err := r.results.Close(); err != nil && r.err == nil {
		r.err = err
	}
}

func (r *pipelineRows) Err() error {
	if err := r.Rows.Err(); err != nil {
		return err
	}
	return r.err
}

// record returns the statement that the generated code sends when it is called with a DBTX.
func record(call func(db DBTX) error) statement {
	var recorded recorder
	_ = call(&recorded)
	return statement(recorded)
}

// recorder is a DBTX that runs nothing and keeps the statement.
type recorder statement

func (r *recorder) Exec(_ context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	r.sql, r.args = sql, args
	return pgconn.CommandTag{}, nil
}

func (r *recorder) Query(context.Context, string, ...any) (pgx.Rows, error) {
	panic("the recorder takes statements without rows")
}

func (r *recorder) QueryRow(context.Context, string, ...any) pgx.Row {
	panic("the recorder takes statements without rows")
}
