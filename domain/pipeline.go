package domain

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-pg/holdfast/gen"
)

// planned is a DBTX that sends PlanByIndex in front of every statement over a set, in the
// same round trip and the same transaction: an implicit one on a pool. With the planner's
// statistics wrong, as they are on a fresh table, a set joined to the inbox is otherwise a
// sequential scan.
type planned struct {
	db interface { // A *pgxpool.Pool or a pgx.Tx.
		SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
		QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	}
}

// planByIndex is the text of the PlanByIndex statement, read from the generated code.
var planByIndex = func() string {
	var recorded recorder
	_ = gen.New().PlanByIndex(context.Background(), &recorded)
	return recorded.sql
}()

// Exec runs a statement that returns no rows.
func (p planned) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	results := p.send(ctx, sql, args)
	_, err := results.Exec()
	if err != nil {
		_ = results.Close()
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
func (p planned) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	results := p.send(ctx, sql, args)
	if _, err := results.Exec(); err != nil {
		_ = results.Close()
		return nil, err
	}
	rows, err := results.Query()
	if err != nil {
		_ = results.Close()
		return nil, err
	}
	return &plannedRows{Rows: rows, results: results}, nil
}

// QueryRow runs a statement on one row, which needs no help with its plan.
func (p planned) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return p.db.QueryRow(ctx, sql, args...)
}

func (p planned) send(ctx context.Context, sql string, args []any) pgx.BatchResults {
	var batch pgx.Batch
	batch.Queue(planByIndex)
	batch.Queue(sql, args...)
	return p.db.SendBatch(ctx, &batch)
}

// plannedRows are the rows of the second statement of a pipeline.
type plannedRows struct {
	pgx.Rows
	results pgx.BatchResults
	err     error
}

func (r *plannedRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.Close()
	return false
}

// Close reads the pipeline to its end, where the transaction commits. It may be called again.
func (r *plannedRows) Close() {
	r.Rows.Close()
	if err := r.results.Close(); err != nil && r.err == nil {
		r.err = err
	}
}

func (r *plannedRows) Err() error {
	if err := r.Rows.Err(); err != nil {
		return err
	}
	return r.err
}

// recorder is a DBTX that runs nothing and keeps the text of the statement.
type recorder struct {
	sql string
}

func (r *recorder) Exec(_ context.Context, sql string, _ ...any) (pgconn.CommandTag, error) {
	r.sql = sql
	return pgconn.CommandTag{}, nil
}

func (r *recorder) Query(context.Context, string, ...any) (pgx.Rows, error) {
	panic("the recorder takes statements without rows")
}

func (r *recorder) QueryRow(context.Context, string, ...any) pgx.Row {
	panic("the recorder takes statements without rows")
}
