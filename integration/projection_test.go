package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// posting is a number that is folded into the total of its key.
type posting struct {
	Amount int64 `json:"amount"`
}

func (posting) Kind() string { return "posting" }

// fold depends on the order, and on each number being there once.
func fold(total, amount int64) int64 { return (total*31 + amount) % 1_000_003 }

const totals = "CREATE TABLE totals (key text PRIMARY KEY, total bigint NOT NULL)"

// apply folds a job into the total of its key.
func apply(ctx context.Context, tx pgx.Tx, job holdfast.Job[posting]) error {
	var total int64
	err := tx.QueryRow(ctx, "SELECT total FROM totals WHERE key = $1", job.PartitionKey).Scan(&total)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	_, err = tx.Exec(ctx, "INSERT INTO totals VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET total = EXCLUDED.total", job.PartitionKey, fold(total, job.Args.Amount))
	return err
}

func TestProjection_EndsEqualToAFoldOverTheArchive(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	database.Exec(t, totals)
	makeOrdered(t, database, "postings")
	const jobs, keys = 300, 10
	for i := range jobs {
		options := []domain.EnqueueOption{domain.OnQueue("postings"), domain.Key(fmt.Sprintf("account:%d", i%keys))}
		if _, err := domain.Enqueue(t.Context(), database.Pool, posting{Amount: int64(i)}, options...); err != nil {
			t.Fatal(err)
		}
	}
	handler := holdfast.HandleProjection(database.Pool, "totals", func(ctx context.Context, tx pgx.Tx, job holdfast.Job[posting]) error {
		if err := apply(ctx, tx, job); err != nil {
			return err
		}
		if job.Seq%7 == 0 && job.Attempt == 1 {
			return holdfast.RetryIn(0, errFirstTime) // What it wrote is rolled back, with its mark.
		}
		return nil
	})
	config := quick()
	config.Queues = []string{"postings"}
	one := startWorker(t, database, database.Pool, "one", config, handler)
	two := startWorker(t, database, database.Pool, "two", config, handler)
	untilCompleted(t, database, jobs)
	one.drain()
	two.drain()

	want := map[string]int64{}
	for _, line := range pgtest.Values[string](t, database, "SELECT partition_key || ' ' || (payload ->> 'amount') FROM holdfast.inbox_archive ORDER BY seq") {
		var key string
		var amount int64
		if _, err := fmt.Sscan(line, &key, &amount); err != nil {
			t.Fatal(err)
		}
		want[key] = fold(want[key], amount)
	}
	for _, line := range pgtest.Values[string](t, database, "SELECT key || ' ' || total FROM totals") {
		var key string
		var total int64
		if _, err := fmt.Sscan(line, &key, &total); err != nil {
			t.Fatal(err)
		}
		if total != want[key] {
			t.Errorf("%s is %d, a fold over the archive %d", key, total, want[key])
		}
		delete(want, key)
	}
	if len(want) > 0 {
		t.Errorf("the projection lacks %v", want)
	}
	position, err := holdfast.ProjectionPosition(t.Context(), database.Pool, "totals")
	if last := pgtest.Value[int64](t, database, "SELECT max(seq) FROM holdfast.inbox_archive"); err != nil || position != last {
		t.Errorf("the position is %d (%v), want %d", position, err, last)
	}
}

func TestProjection_AppliesEachNumberOnceInAnyOrder(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	mark := func(projection string, seq int64, want bool) {
		t.Helper()
		first, err := domain.MarkApplied(t.Context(), database.Pool, projection, seq, domain.JobID{})
		if err != nil || first != want {
			t.Errorf("%s applies %d for the first time: %t (%v), want %t", projection, seq, first, err, want)
		}
	}
	position := func(projection string, want int64) {
		t.Helper()
		if got, err := domain.ProjectionPosition(t.Context(), database.Pool, projection); err != nil || got != want {
			t.Errorf("%s is at %d (%v), want %d", projection, got, err, want)
		}
	}
	position("a", 0)
	mark("a", 9, true)
	mark("a", 10, true)
	mark("a", 3, true) // Committed late.
	mark("a", 9, false)
	mark("b", 9, true)
	position("a", 10)
	position("b", 9)

	var invalid *domain.InvalidError
	for _, name := range []string{"", strings.Repeat("x", 190)} {
		if _, err := domain.MarkApplied(t.Context(), database.Pool, name, 1, domain.JobID{}); !errors.As(err, &invalid) {
			t.Errorf("a projection of %d bytes: %v", len(name), err)
		}
	}
}
