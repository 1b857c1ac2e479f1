package bench

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// trips is a tracer that counts the round trips of connections, the statements that travelled
// in them, and the transactions that ended in them: whatever leaves a session outside of one
// has just ended one. The pings of a pool are round trips and transactions too.
type trips struct {
	made  atomic.Int64
	sent  atomic.Int64
	pings atomic.Int64
	ended atomic.Int64
}

var (
	_ pgx.QueryTracer = (*trips)(nil)
	_ pgx.BatchTracer = (*trips)(nil)
)

// TraceQueryStart does nothing: a statement counts when its answer is there.
func (t *trips) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

// TraceQueryEnd counts a statement.
func (t *trips) TraceQueryEnd(_ context.Context, conn *pgx.Conn, _ pgx.TraceQueryEndData) {
	t.sent.Add(1)
	t.count(conn)
}

// TraceBatchStart counts each statement of a batch.
func (t *trips) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	t.sent.Add(int64(data.Batch.Len()))
	return ctx
}

// TraceBatchQuery does nothing: the statements of a batch travel together.
func (t *trips) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd counts a batch.
func (t *trips) TraceBatchEnd(_ context.Context, conn *pgx.Conn, _ pgx.TraceBatchEndData) {
	t.count(conn)
}

// pingAfter is how long a connection has done nothing when its pool pings it before use:
// pgxpool's default.
const pingAfter = time.Second

// shouldPing is pgxpool's default rule, and counts the pings, which no tracer sees.
func (t *trips) shouldPing(_ context.Context, params pgxpool.ShouldPingParams) bool {
	if params.IdleDuration <= pingAfter {
		return false
	}
	t.made.Add(1)
	t.pings.Add(1)
	t.ended.Add(1)
	return true
}

func (t *trips) count(conn *pgx.Conn) {
	t.made.Add(1)
	if conn.PgConn().TxStatus() == 'I' {
		t.ended.Add(1)
	}
}
