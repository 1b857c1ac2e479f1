package main

import (
	"context"
	"os/exec"

	"github.com/jackc/pgx/v5/pgxpool"
)

// system is one of the job systems that take turns. Each has a database of its own.
type system interface {
	// Name stands in the table.
	Name() string

	// Settings says, for the report, how the system is set up.
	Settings() string

	// Deletes says whether a job that is done leaves no row, so that the figures are compared
	// with the bare loop that does the same.
	Deletes() bool

	// Migrate makes the schema in an empty database.
	Migrate(ctx context.Context, url string) error

	// Add adds n jobs in one call, by the system's way for many.
	Add(ctx context.Context, pool *pgxpool.Pool, n int) error

	// Done counts the jobs that the tables show as done, of those that were added.
	Done(ctx context.Context, pool *pgxpool.Pool, added int) (int, error)

	// Waiting counts the jobs that nobody has taken yet, up to a limit, so that a look is
	// cheap.
	Waiting(ctx context.Context, pool *pgxpool.Pool, limit int) (int, error)

	// Worker returns the process that works; see startWorker for what is asked of it.
	Worker() *exec.Cmd
}

// addBatch is how many jobs are added in one call: what River's own bench adds.
const addBatch = 5_000

// payloadSize is the size of each job's JSON, in bytes.
const payloadSize = 128

// payload is the JSON object that every job carries.
type payload struct {
	Filler string `json:"filler"`
}

// Kind names the handler, for River and Holdfast alike.
func (payload) Kind() string { return "noop" }

func newPayload() payload {
	const around = len(`{"filler":""}`)
	filler := make([]byte, payloadSize-around)
	for i := range filler {
		filler[i] = 'x'
	}
	return payload{Filler: string(filler)}
}

// count runs a statement that returns one number.
func count(ctx context.Context, pool *pgxpool.Pool, sql string, args ...any) (int, error) {
	var n int
	err := pool.QueryRow(ctx, sql, args...).Scan(&n)
	return n, err
}
