package domain

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast/gen"
)

// DBTX is what a statement runs on: a *pgxpool.Pool, a *pgx.Conn or a pgx.Tx.
type DBTX = gen.DBTX

// queueConnections is how many connections a Queue opens at most: one each to claim, to
// settle, to renew and beat, and to keep house, so that none of these waits for another.
const queueConnections = 4

// connectTimeout is how long a Queue waits for a connection unless the pool's settings say.
const connectTimeout = 5 * time.Second

// Queue is the Postgres side of a worker: the statements that claim, renew and settle jobs.
// It is safe for concurrent use.
type Queue struct {
	pool    *pgxpool.Pool
	planned pipeline
	queries *gen.Queries
	cursors laneCursors
}

// NewQueue returns a queue with a small pool of its own, at most four connections, made
// after the settings of the given pool: however busy the handlers keep theirs, leases are
// renewed and results settled. Nothing is connected before the first call. Close frees it.
func NewQueue(pool *pgxpool.Pool) (*Queue, error) {
	config := pool.Config()
	config.MaxConns = queueConnections
	config.MinConns = 0
	config.MinIdleConns = 0
	if config.ConnConfig.ConnectTimeout == 0 {
		// One that hangs keeps a place that a renewal may be waiting for.
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	// Set statements are planned on each call: a cached generic plan that was made while the
	// table was empty stays, and halves the throughput. This mode also suits PgBouncer.
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	config.ConnConfig.DescriptionCacheCapacity = 512
	own, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, fmt.Errorf("open the queue's connections: %w", err)
	}
	return &Queue{pool: own, planned: newPlanned(own), queries: gen.New()}, nil
}

// Close ends the queue's connections and waits for calls under way.
func (q *Queue) Close() {
	q.pool.Close()
}
