package domain

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast/gen"
)

// DBTX is what a statement runs on: a *pgxpool.Pool, a *pgx.Conn or a pgx.Tx.
type DBTX = gen.DBTX

// How many connections a Queue opens at most, besides the one that listens.
const (
	DefaultConnections = 7
	MinConnections     = 4
)

// pingAfter is how long a connection is idle before it is asked whether it lives.
const pingAfter = 30 * time.Second

// connectTimeout is how long a Queue waits for a connection unless the pool's settings say.
const connectTimeout = 5 * time.Second

// Queue is the Postgres side of a worker: the statements that claim, renew and settle jobs.
// It is safe for concurrent use.
type Queue struct {
	pool        *pgxpool.Pool // For what must never wait: settlements, renewals, heartbeats.
	planned     pipeline
	work        *pgxpool.Pool // For claims and housekeeping.
	plannedWork pipeline
	listen      *pgx.ConnConfig
	queries     *gen.Queries
	cursors     laneCursors
}

// QueueOption says how a Queue connects.
type QueueOption func(*queueOptions) error

type queueOptions struct {
	connections int
	directURL   string
}

// Connections is how many connections the queue opens at most, besides the one that listens;
// 0 stands for the default, 7. Half of them, rounded down, are for settlements, renewals and
// heartbeats alone. 4 is the least: two that never wait for a claim, and two for housekeeping,
// which holds its election on one and works on the other.
func Connections(n int) QueueOption {
	return func(options *queueOptions) error {
		if n == 0 {
			n = DefaultConnections
		}
		options.connections = n
		if n < MinConnections {
			return &InvalidError{Field: "connections", Reason: fmt.Sprintf(
				"%d is less than %d: two for settlements, renewals and heartbeats, which must not wait for a claim, and two for claims and housekeeping", n, MinConnections)}
		}
		return nil
	}
}

// ListenOn is the address to listen on, for a pool that goes through a pooler in transaction
// mode; "" stands for the pool's own.
func ListenOn(url string) QueueOption {
	return func(options *queueOptions) error {
		options.directURL = url
		return nil
	}
}

// NewQueue returns a queue with connections of its own, made after the settings of the given
// pool: however busy the handlers keep theirs, leases are renewed and results settled.
// Nothing is connected before the first call. Close frees it.
func NewQueue(pool *pgxpool.Pool, options ...QueueOption) (*Queue, error) {
	chosen := queueOptions{connections: DefaultConnections}
	for _, option := range options {
		if err := option(&chosen); err != nil {
			return nil, err
		}
	}
	listen, err := listenConfig(pool, chosen.directURL)
	if err != nil {
		return nil, err
	}
	control, err := ownPool(pool, chosen.connections/2)
	if err != nil {
		return nil, err
	}
	work, err := ownPool(pool, (chosen.connections+1)/2)
	if err != nil {
		control.Close()
		return nil, err
	}
	return &Queue{
		pool: control, planned: newPlanned(control),
		work: work, plannedWork: newPlanned(work),
		listen: listen, queries: gen.New(),
	}, nil
}

// ownPool opens a pool of another size with the settings of the one given.
func ownPool(pool *pgxpool.Pool, connections int) (*pgxpool.Pool, error) {
	config := pool.Config()
	config.MaxConns = int32(connections)
	config.MinConns = 0
	config.MinIdleConns = 0
	if config.ConnConfig.ConnectTimeout == 0 {
		// One that hangs keeps a place that a renewal may be waiting for.
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	// Statements stay prepared, unless the pool says otherwise: it may be behind a pooler that does
	// not know them. To parse and to plan a small claim takes longer than to run it.
	if config.ConnConfig.DefaultQueryExecMode != pgx.QueryExecModeCacheStatement {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		config.ConnConfig.DescriptionCacheCapacity = 512
	}
	// By default the pool asks every connection that was idle for a second whether it lives: two
	// round trips and commits for each poll of an idle worker. One that died is noticed at the
	// next statement, which the worker sends again.
	connected := config.AfterConnect
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		conn.TypeMap().RegisterType(&pgtype.Type{
			Name: "jsonb", OID: pgtype.JSONBOID, Codec: &pgtype.JSONBCodec{Marshal: json.Marshal, Unmarshal: unmarshalJSON},
		})
		if connected == nil {
			return nil
		}
		return connected(ctx, conn)
	}
	config.ShouldPing = func(_ context.Context, params pgxpool.ShouldPingParams) bool {
		return params.IdleDuration > pingAfter
	}
	own, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, fmt.Errorf("open the queue's connections: %w", err)
	}
	return own, nil
}

// unmarshalJSON takes payloads as they are: Postgres has checked that they are JSON.
func unmarshalJSON(data []byte, target any) error {
	if raw, asItIs := target.(*json.RawMessage); asItIs {
		*raw = bytes.Clone(data)
		return nil
	}
	return json.Unmarshal(data, target)
}

func listenConfig(pool *pgxpool.Pool, directURL string) (*pgx.ConnConfig, error) {
	config := pool.Config().ConnConfig
	if directURL != "" {
		direct, err := pgx.ParseConfig(directURL)
		if err != nil {
			// The driver's words may hold the password.
			return nil, &InvalidError{Field: "direct URL", Reason: "cannot be read: write postgres://user@host:port/database"}
		}
		config = direct
	}
	// A pooler may not know prepared statements, and it is the probe that must find it out.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	return config, nil
}

// Close ends the queue's connections and waits for calls under way.
func (q *Queue) Close() {
	q.pool.Close()
	q.work.Close()
}
