package integration

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

func TestHandled_EffectIsDoneOnceThoughTheHandlerRunsTwice(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	database.Exec(t, "CREATE TABLE receipts (order_id bigint)")
	id := enqueue(t, database)
	send := func(job domain.ClaimedJob) (sent bool) {
		err := pgx.BeginFunc(t.Context(), database.Pool, func(tx pgx.Tx) (err error) {
			sent, err = domain.MarkHandled(t.Context(), tx, job.ID, "send_receipt")
			if err == nil && sent {
				_, err = tx.Exec(t.Context(), "INSERT INTO receipts VALUES (9182)")
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return sent
	}
	if !send(claimOne(t, queue, "w1")) {
		t.Fatal("the first run was told that the receipt was sent")
	}
	database.ExpireLease(t, id)
	mustReclaim(t, queue, 1)
	database.EndWait(t, id)
	if send(claimOne(t, queue, "w2")) {
		t.Fatal("the second run was told that it is the first")
	}
	if receipts := pgtest.Value[int64](t, database, "SELECT count(*) FROM receipts"); receipts != 1 {
		t.Fatalf("%d receipts", receipts)
	}
}

func TestHandled_MarkOfARolledBackRunDoesNotCount(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	id := enqueue(t, database)
	err := pgx.BeginFunc(t.Context(), database.Pool, func(tx pgx.Tx) error {
		_, err := domain.MarkHandled(t.Context(), tx, id, "send_receipt")
		return errors.Join(err, errChangedMind)
	})
	wantError(t, err, errChangedMind)
	if first, err := domain.MarkHandled(t.Context(), database.Pool, id, "send_receipt"); err != nil || !first {
		t.Fatalf("after a rollback first is %v, error %v", first, err)
	}
	if first, err := domain.MarkHandled(t.Context(), database.Pool, id, "another effect"); err != nil || !first {
		t.Fatalf("another effect of the job: first is %v, error %v", first, err)
	}
}

func TestHandled_RacingRunsMarkOnce(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	id := enqueue(t, database)
	first := make([]bool, 8)
	failures := make([]error, len(first))
	atOnce(len(first), func(i int) {
		first[i], failures[i] = domain.MarkHandled(t.Context(), database.Pool, id, "send_receipt")
	})
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
	firsts := 0
	for _, won := range first {
		if won {
			firsts++
		}
	}
	if firsts != 1 {
		t.Fatalf("%d runs were told that they are the first", firsts)
	}
}

func TestFencedEffects_LowerTokenAfterAHigherOneIsRefused(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	guard := func(token int64) error {
		return domain.Guard(t.Context(), database.Pool, "order:9182", domain.Claim{Generation: token})
	}
	for _, token := range []int64{5, 5, 7} {
		if err := guard(token); err != nil {
			t.Fatalf("token %d after none higher: %v", token, err)
		}
	}
	wantError(t, guard(6), domain.ErrFenced)
	if err := domain.Guard(t.Context(), database.Pool, "order:9183", domain.Claim{Generation: 6}); err != nil {
		t.Fatalf("another resource: %v", err)
	}
	for _, resource := range []string{"", string(make([]byte, 201))} {
		var invalid *domain.InvalidError
		if err := domain.Guard(t.Context(), database.Pool, resource, domain.Claim{}); !errors.As(err, &invalid) {
			t.Fatalf("a resource of %d bytes: %v", len(resource), err)
		}
	}
}

// A stale worker that waits behind the current one's open transaction is refused when that
// commits, and admitted when it rolls back.
func TestFencedEffects_WaitingStaleWorkerIsRefusedAtTheCommit(t *testing.T) {
	t.Parallel()
	for commits, want := range map[bool]error{true: domain.ErrFenced, false: nil} {
		database := pgtest.New(t)
		current, err := database.Pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := domain.Guard(t.Context(), current, "order:9182", domain.Claim{Generation: 7}); err != nil {
			t.Fatal(err)
		}
		stale := make(chan error, 1)
		go func() {
			stale <- domain.Guard(context.WithoutCancel(t.Context()), database.Pool, "order:9182", domain.Claim{Generation: 6})
		}()
		pgtest.Eventually(t, 10*time.Second, "the stale worker waits", func() bool {
			return pgtest.Value[bool](t, database, "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
		})
		if commits {
			err = current.Commit(t.Context())
		} else {
			err = current.Rollback(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := <-stale; !errors.Is(err, want) {
			t.Fatalf("the current worker committed: %v; the stale one was told %v, want %v", commits, err, want)
		}
	}
}
