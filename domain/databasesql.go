package domain

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// SQLTX is what FromSQL needs of a transaction: *sql.Tx has it, and so have those of libraries on top
// of database/sql.
type SQLTX interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// FromSQL lets Enqueue and the other functions that take a DBTX run in a transaction of database/sql.
// Its driver must be pgx's, github.com/jackc/pgx/v5/stdlib: no other one takes the arguments. What is
// done through it commits with the transaction, or not at all.
func FromSQL(tx SQLTX) DBTX { return sqlTx{tx} }

type sqlTx struct{ tx SQLTX }

func (t sqlTx) Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error) {
	result, err := t.tx.ExecContext(ctx, query, args...)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	// pgx's driver knows the number, but no more of the tag.
	count, err := result.RowsAffected()
	return pgconn.NewCommandTag(fmt.Sprintf("EXEC %d", count)), err
}

func (t sqlTx) Query(ctx context.Context, query string, args ...any) (pgx.Rows, error) {
	rows, err := t.tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return &sqlRows{rows: rows}, nil
}

func (t sqlTx) QueryRow(ctx context.Context, query string, args ...any) pgx.Row {
	rows, err := t.Query(ctx, query, args...)
	return firstRow{rows: rows, err: err}
}

// sqlRows has what statements need of rows. Of what they do not need it has the zero value: database/sql
// does not show it.
type sqlRows struct {
	rows  *sql.Rows
	count int64
	err   error
}

func (r *sqlRows) Next() bool {
	if !r.rows.Next() {
		return false
	}
	r.count++
	return true
}

func (r *sqlRows) Close()                 { r.err = errors.Join(r.err, r.rows.Close()) }
func (r *sqlRows) Err() error             { return errors.Join(r.err, r.rows.Err()) }
func (r *sqlRows) Scan(dest ...any) error { return r.rows.Scan(dest...) }
func (r *sqlRows) CommandTag() pgconn.CommandTag {
	return pgconn.NewCommandTag(fmt.Sprintf("SELECT %d", r.count))
}
func (r *sqlRows) FieldDescriptions() []pgconn.FieldDescription { return nil }
func (r *sqlRows) RawValues() [][]byte                          { return nil }
func (r *sqlRows) TypeMap() *pgtype.Map                         { return nil }
func (r *sqlRows) Conn() *pgx.Conn                              { return nil }

// Values returns the columns of a row as database/sql reads them.
func (r *sqlRows) Values() ([]any, error) {
	columns, err := r.rows.Columns()
	if err != nil {
		return nil, err
	}
	values, places := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		places[i] = &values[i]
	}
	return values, r.rows.Scan(places...)
}
