package integration

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// parcel is a payload of 128 bytes.
var parcel = note{Text: strings.Repeat("x", 128-len(`{"text":""}`))}

// BenchmarkEnqueue_Many measures sets of 1,000 jobs from two connections, without and with
// idempotency keys. The private server of the tests does not wait for its disk: give it one
// that does.
//
//	HOLDFAST_TEST_DATABASE_URL=… go test -run '^$' -bench Enqueue_Many -benchtime 100x ./integration
func BenchmarkEnqueue_Many(b *testing.B) {
	const size = 1000
	for _, keyed := range []bool{false, true} {
		b.Run(fmt.Sprintf("keyed=%t", keyed), func(b *testing.B) {
			database := pgtest.New(b)
			var keys atomic.Int64
			b.ReportAllocs()
			atConnections(b, database, 2, func(conn *pgx.Conn) error {
				jobs := make([]domain.NewJob, size)
				for i := range jobs {
					jobs[i].Args = parcel
					if keyed {
						jobs[i].Options = []domain.EnqueueOption{domain.Once(fmt.Sprintf("parcel:%d", keys.Add(1)))}
					}
				}
				_, err := domain.EnqueueMany(b.Context(), conn, jobs...)
				return err
			})
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// BenchmarkEnqueue_One measures single jobs, each in a transaction of its own, from sixteen
// connections, beside the bare insert of the same row.
//
//	HOLDFAST_TEST_DATABASE_URL=… go test -run '^$' -bench Enqueue_One -benchtime 20000x ./integration
func BenchmarkEnqueue_One(b *testing.B) {
	payload := fmt.Sprintf(`{"text": %q}`, parcel.Text)
	var keys atomic.Int64
	for name, add := range map[string]func(*pgx.Conn) error{
		"plain": func(conn *pgx.Conn) error {
			_, err := domain.Enqueue(b.Context(), conn, parcel)
			return err
		},
		"keyed": func(conn *pgx.Conn) error {
			_, err := domain.Enqueue(b.Context(), conn, parcel, domain.Once(fmt.Sprintf("parcel:%d", keys.Add(1))))
			return err
		},
		"bare": func(conn *pgx.Conn) error {
			id := domain.NewJobID(time.Now(), 7)
			_, err := conn.Exec(b.Context(), `
				INSERT INTO holdfast.inbox (id, partition_bucket, queue, kind, partition_key, payload)
				VALUES ($1, 7, 'default', 'note', $2, $3)`, id, rand.Text(), payload)
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			atConnections(b, pgtest.New(b), 16, add)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// atConnections runs a call b.N times, from so many connections at once.
func atConnections(b *testing.B, database *pgtest.Database, connections int, call func(*pgx.Conn) error) {
	b.Helper()
	config := database.Config()
	config.Tracer = nil
	var callers sync.WaitGroup
	var calls atomic.Int64
	begin := make(chan struct{})
	for range connections {
		conn, err := pgx.ConnectConfig(b.Context(), config)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = conn.Close(context.Background()) })
		callers.Go(func() {
			<-begin
			for calls.Add(1) <= int64(b.N) {
				if err := call(conn); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	b.ResetTimer()
	close(begin)
	callers.Wait()
	b.StopTimer()
}
