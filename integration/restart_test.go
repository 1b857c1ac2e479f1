package integration

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// booking is a job whose effect is an entry in the ledger, in the transaction that completes
// it.
type booking struct{}

func (booking) Kind() string { return "booking" }

// The server crashes twice under load, and is back at once. What it had committed counts: a
// job whose enqueue returned is completed, once.
func TestKept_NoJobIsLostWhenTheDatabaseRestartsUnderLoad(t *testing.T) {
	t.Parallel()
	database, server := pgtest.Alone(t)
	database.Exec(t, ledger)
	handlers := []holdfast.Handler{
		completing(),
		holdfast.HandleTx(database.Pool, func(ctx context.Context, tx pgx.Tx, job holdfast.Job[booking]) error {
			return enter(ctx, tx, job.ClaimedJob)
		}),
	}
	workers := []*workerRun{
		startWorker(t, database, database.Pool, "one", shortLease(), handlers...),
		startWorker(t, database, database.Pool, "two", shortLease(), handlers...),
	}
	producing := startProducer(t, database, 3*time.Millisecond, func(n int) domain.Args {
		if n%2 == 1 {
			return booking{}
		}
		return note{Text: "hello"}
	})
	database = database.Direct(t) // The test's own connections are whole after a crash.
	untilBothComplete(t, database, 0)
	for range 2 {
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		database.Pool.Reset()
		untilBothComplete(t, database, pgtest.Value[int64](t, database, "SELECT last_value FROM holdfast.inbox_seq"))
	}
	enqueued := producing.stop()
	pgtest.Eventually(t, patience, "no job is left to do", func() bool {
		return pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox") == 0
	})
	for _, worker := range workers {
		worker.wantRunning()
		worker.drain()
	}
	if lost := pgtest.Value[int](t, database, "SELECT count(*) FROM unnest($1::uuid[]) AS id WHERE id NOT IN (SELECT archived.id FROM holdfast.inbox_archive AS archived)", enqueued); lost != 0 {
		t.Errorf("%d of %d jobs are lost", lost, len(enqueued))
	}
	if twice := pgtest.Value[int](t, database, "SELECT count(*) - count(DISTINCT id) FROM holdfast.inbox_archive"); twice != 0 {
		t.Errorf("%d jobs were completed twice", twice)
	}
	if bookings := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox_archive WHERE kind = 'booking'"); entries(t, database) != bookings {
		t.Errorf("%d effects of %d jobs", entries(t, database), bookings)
	}
	wantJitter(t, workers)
}

// untilBothComplete waits ten seconds at most until each of the two workers has completed
// fifty jobs that were enqueued after the one of the number.
func untilBothComplete(t *testing.T, database *pgtest.Database, after int64) {
	t.Helper()
	pgtest.Eventually(t, 10*time.Second, "both workers have completed fifty jobs more", func() bool {
		return pgtest.Value[int](t, database, `
			SELECT count(*) FROM (
				SELECT finished_by FROM holdfast.inbox_archive WHERE seq > $1 GROUP BY finished_by HAVING count(*) >= 50
			) AS busy`, after) == 2
	})
}

// wantJitter fails the test if two waits before a reconnect were alike.
func wantJitter(t *testing.T, workers []*workerRun) {
	t.Helper()
	var waits []string
	for _, worker := range workers {
		for _, line := range regexp.MustCompile(`cannot listen for jobs.* wait=(\S+)`).FindAllStringSubmatch(worker.log.String(), -1) {
			waits = append(waits, line[1])
		}
	}
	slices.Sort(waits)
	if len(waits) < 4 || len(slices.Compact(slices.Clone(waits))) != len(waits) {
		t.Errorf("two listeners that lost their connections twice waited %s", strings.Join(waits, ", "))
	}
}

// producer goes on enqueueing, also when it cannot.
type producer struct {
	cancel   context.CancelFunc
	ended    sync.WaitGroup
	enqueued []string // Ids of the jobs whose enqueue returned; complete once it has ended.
}

func startProducer(t *testing.T, database *pgtest.Database, every time.Duration, args func(n int) domain.Args) *producer {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p := &producer{cancel: cancel}
	p.ended.Go(func() {
		again := time.NewTicker(every)
		defer again.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			// Once stopped, the last enqueue still returns: cut off, it may commit and nobody would count its job.
			if result, err := domain.Enqueue(context.WithoutCancel(ctx), database.Pool, args(n)); err == nil {
				p.enqueued = append(p.enqueued, result.ID.String())
			}
			select {
			case <-again.C:
			case <-ctx.Done():
			}
		}
	})
	t.Cleanup(func() { p.stop() })
	return p
}

// stop ends the producer and returns the ids of the jobs whose enqueue returned.
func (p *producer) stop() []string {
	p.cancel()
	p.ended.Wait()
	return p.enqueued
}
