package integration

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/gen"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// counted is a database that counts what is sent to it.
type counted struct {
	gen.DBTX
	sent int
}

func (c *counted) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	c.sent++
	return c.DBTX.Exec(ctx, sql, args...)
}

func (c *counted) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	c.sent++
	return c.DBTX.Query(ctx, sql, args...)
}

func (c *counted) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	c.sent++
	return c.DBTX.QueryRow(ctx, sql, args...)
}

// rolledBack runs something in a transaction that leaves nothing behind.
func rolledBack(t *testing.T, conn *pgx.Conn, run func(tx *counted)) {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	run(&counted{DBTX: tx})
}

// A resource has the limits that all names have. What Go refuses was never sent, and the
// database would have refused it too.
func FuzzLimits_NamesHaveOneVerdictInGoAndSQL(f *testing.F) {
	f.Add("", 1)
	f.Add("a", 200)
	f.Add("🐘", 200)
	f.Add("🐘", 201)
	f.Add("a\x00", 1)
	f.Add("a\xff", 1)
	f.Add("\xf0\x9f", 100)
	conn := pgtest.New(f).Conn(f)
	f.Fuzz(func(t *testing.T, piece string, times int) {
		name := strings.Repeat(piece, min(max(times, 1), 300))
		var inGo, inSQL error
		var sent int
		rolledBack(t, conn, func(tx *counted) {
			inGo = domain.Guard(t.Context(), tx, name, domain.Claim{Generation: 1})
			sent = tx.sent
		})
		rolledBack(t, conn, func(tx *counted) {
			_, inSQL = gen.New().GuardResource(t.Context(), tx, gen.GuardResourceParams{Resource: name, Token: 1})
		})
		invalid := (*domain.InvalidError)(nil)
		if (inGo == nil) != (inSQL == nil) || inGo != nil && (!errors.As(inGo, &invalid) || sent > 0) {
			t.Fatalf("%q: %v in Go, after %d statements, and %v in SQL", name, inGo, sent, inSQL)
		}
	})
}

// Every enqueue is done or refused with an InvalidError. Names are refused before anything is
// sent; a document that only the database can measure may be refused by it.
func FuzzLimits_EnqueueIsDoneOrRefusedInWords(f *testing.F) {
	f.Add("kind", "queue", "key", "once", "header", []byte(`{"text": "ä"}`), uint16(0), int64(0))
	f.Add(strings.Repeat("k", 201), "", "a\x00b", "\xff", "\x00", []byte(`"\u0000"`), uint16(0), int64(1))
	f.Add("kind", "queue", "key", "once", "", []byte("1"), uint16(60000), int64(1<<40))
	f.Add("kind", "queue", "key", "once", "\xff", []byte(`"\ud800"`), uint16(2), int64(-1<<40))
	f.Add("kind", "queue", "key", "once", strings.Repeat("h", 8<<10), []byte("1e999999"), uint16(1), int64(1<<53))
	f.Add("kind", "queue", "key", "once", "a", []byte("\"\xff\""), uint16(0), int64(-1<<53))
	f.Add("kind", "queue", "key", "once", "a", append(bytes.Repeat([]byte("["), 9999), bytes.Repeat([]byte("]"), 9999)...), uint16(0), int64(1<<62))
	conn := pgtest.New(f).Conn(f)
	f.Fuzz(func(t *testing.T, kind, queue, key, once, header string, payload []byte, repeat uint16, at int64) {
		if repeat > 0 {
			payload = slices.Concat([]byte("["), bytes.Join(slices.Repeat([][]byte{payload}, min(int(repeat), 300<<10/(len(payload)+1)+1)), []byte(",")), []byte("]"))
		}
		rolledBack(t, conn, func(tx *counted) {
			result, err := domain.Enqueue(t.Context(), tx, domain.RawArgs{JobKind: kind, Payload: payload},
				domain.OnQueue(queue), domain.Key(key), domain.Once(once), domain.Headers(map[string]string{"h": header}), domain.At(time.Unix(at, 0)))
			var invalid *domain.InvalidError
			switch {
			case err == nil:
				if want := domain.BucketOf(key, 1024); result.ID.Bucket() != want {
					t.Fatalf("the job of key %q is in bucket %d, want %d", key, result.ID.Bucket(), want)
				}
			case !errors.As(err, &invalid):
				t.Fatalf("%v, want an InvalidError", err)
			case tx.sent > 0 && !slices.Contains([]string{"payload", "headers", "argument"}, invalid.Field):
				t.Fatalf("%v, after %d statements", err, tx.sent)
			}
		})
	})
}
