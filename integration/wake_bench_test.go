package integration

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// BenchmarkWake_Pickup measures the time from a producer's commit to the start of the job's
// handler, with four producers whose transactions stay open for 5 ms:
//
//	go test -run '^$' -bench Wake_Pickup -benchtime 2000x ./integration
func BenchmarkWake_Pickup(b *testing.B) {
	for _, pollOnly := range []bool{false, true} {
		b.Run(fmt.Sprintf("pollOnly=%t", pollOnly), func(b *testing.B) {
			database := pgtest.New(b)
			times := &pickups{committed: map[holdfast.JobID]time.Time{}, started: map[holdfast.JobID]time.Time{}}
			worker, err := holdfast.NewWorker(database.Pool, holdfast.Config{
				PollOnly: pollOnly, Concurrency: 32, DirectURL: database.DirectURL, Logger: slog.New(slog.DiscardHandler),
			},
				holdfast.Handle(func(_ context.Context, job holdfast.Job[note]) error {
					times.note(times.started, job.ID)
					return nil
				}))
			if err != nil {
				b.Fatal(err)
			}
			ctx, stop := context.WithCancel(b.Context())
			returned := make(chan error, 1)
			go func() { returned <- worker.Run(ctx) }()
			pgtest.Eventually(b, 10*time.Second, "the worker has joined", func() bool {
				return pgtest.Value[int](b, database, "SELECT count(*) FROM holdfast.workers") == 1
			})
			b.ResetTimer()
			produce(b, database, times)
			pgtest.Eventually(b, 10*time.Second, "every job was started", func() bool { return times.complete(b.N) })
			b.StopTimer()
			stop()
			if err := <-returned; err != nil {
				b.Fatal(err)
			}
			times.report(b)
		})
	}
}

// produce enqueues b.N jobs by four producers, each of which pauses 20 ms on average.
func produce(b *testing.B, database *pgtest.Database, times *pickups) {
	b.Helper()
	var producers sync.WaitGroup
	for producer := range 4 {
		producers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(producer)))
			for i := producer; i < b.N; i += 4 {
				<-time.After(time.Duration(random.ExpFloat64() * float64(20*time.Millisecond)))
				var id holdfast.JobID
				err := pgx.BeginFunc(b.Context(), database.Pool, func(tx pgx.Tx) error {
					result, err := domain.Enqueue(b.Context(), tx, note{Text: "hello"})
					id = result.ID
					<-time.After(5 * time.Millisecond)
					return err
				})
				if err != nil {
					b.Error(err)
					return
				}
				times.note(times.committed, id)
			}
		})
	}
	producers.Wait()
}

// pickups are when jobs were committed and started.
type pickups struct {
	mutex              sync.Mutex
	committed, started map[holdfast.JobID]time.Time
}

func (p *pickups) note(times map[holdfast.JobID]time.Time, id holdfast.JobID) {
	now := time.Now()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	times[id] = now
}

func (p *pickups) complete(jobs int) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return len(p.started) == jobs
}

func (p *pickups) report(b *testing.B) {
	b.Helper()
	var waits []time.Duration
	for id, at := range p.committed {
		waits = append(waits, max(p.started[id].Sub(at), 0)) // A handler may start before its commit has returned.
	}
	slices.Sort(waits)
	for _, percent := range []int{50, 99} {
		b.ReportMetric(float64(waits[min(len(waits)*percent/100, len(waits)-1)].Microseconds())/1000, fmt.Sprintf("p%d-ms", percent))
	}
}
