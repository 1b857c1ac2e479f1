package integration

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast/app/support"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
	"github.com/holdfast-pg/holdfast/relay"
	"github.com/holdfast-pg/holdfast/relay/inbox"
)

// otherInbox is a publisher to a queue of the receiver's database.
func otherInbox(t *testing.T, receiver *pgtest.Database) relay.Publisher {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), receiver.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return inbox.New(pool, "arrivals")
}

// startRelay runs a relay of the outbox until it is stopped, or the test ends.
func startRelay(t *testing.T, database *pgtest.Database, publisher relay.Publisher) (stop func()) {
	t.Helper()
	config := relay.Config{Queue: "outbox", Destination: "test", Worker: quick()}
	config.Worker.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	created, err := relay.New(database.Pool, config, publisher)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan error, 1)
	go func() { returned <- created.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-returned; err != nil {
			t.Errorf("the relay returned %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// enqueueMessage adds a message to the outbox.
func enqueueMessage(t *testing.T, database *pgtest.Database, kind, key, payload string) domain.JobID {
	t.Helper()
	added, err := domain.Enqueue(t.Context(), database.Pool, domain.RawArgs{JobKind: kind, Payload: []byte(payload)}, domain.OnQueue("outbox"), domain.Key(key),
		domain.Headers(map[string]string{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tenant": "a"}))
	if err != nil {
		t.Fatal(err)
	}
	return added.ID
}

func TestRelay_FromOneDatabaseToAnotherOnce(t *testing.T) {
	t.Parallel()
	sender, receiver := pgtest.New(t), pgtest.New(t)
	makeOrdered(t, sender, "outbox")
	// A constraint that the receiver has of its own.
	receiver.Exec(t, "ALTER TABLE holdfast.inbox ADD CONSTRAINT no_spam CHECK (kind <> 'spam')")
	first := enqueueMessage(t, sender, "placed", "order:1", `{"n": 1}`)
	spam := enqueueMessage(t, sender, "spam", "order:1", `{"n": 2}`)
	enqueueMessage(t, sender, "placed", "order:1", `{"n": 3}`)
	enqueueMessage(t, sender, "placed", "order:2", `{"n": 4}`)
	stop := startRelay(t, sender, otherInbox(t, receiver))
	pgtest.Eventually(t, patience, "all messages have an end", func() bool {
		return pgtest.Value[int](t, sender, "SELECT count(*) FROM holdfast.inbox WHERE status IN ('pending', 'processing')") == 0
	})
	arrived := strings.Join(pgtest.Values[string](t, receiver, "SELECT payload ->> 'n' FROM holdfast.inbox WHERE queue = 'arrivals' AND partition_key = 'order:1' ORDER BY seq"), " ")
	if arrived != "1 3" {
		t.Errorf("order:1 arrived as %q, want 1 3: the refused message holds up nobody", arrived)
	}
	if refused := find(t, sender, spam); refused.Status != domain.StatusFailed || !strings.Contains(*refused.LastError, "no_spam") {
		t.Errorf("the refused message is %s with the error %q, want the receiver's words", refused.Status, *refused.LastError)
	}
	pgtest.Eventually(t, patience, "the relay says how it is", func() bool {
		relays, err := support.Relays(t.Context(), sender.Pool, 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(relays) == 1 && relays[0].Published == 3 && relays[0].Refused == 1 && relays[0].Dead.Jobs == 1 && strings.Contains(relays[0].LastError, "no_spam")
	})
	stop()

	// The job there has the id as its key, and knows where it comes from.
	var headers map[string]string
	if err := receiver.Pool.QueryRow(t.Context(), "SELECT headers FROM holdfast.inbox WHERE idempotency_key = $1", first.String()).Scan(&headers); err != nil {
		t.Fatal(err)
	}
	if headers["ce-source"] != "/holdfast/outbox" || headers["tenant"] != "a" || headers["traceparent"] == "" || headers["ce-sequence"] == "" {
		t.Errorf("the headers are %v", headers)
	}

	// All of it once more.
	published := 0
	done, err := relay.Replay(t.Context(), sender.Pool, domain.PublishedFilter{Queue: "outbox", Since: time.Hour}, otherInbox(t, receiver), relay.Config{}, func(relay.Replayed) { published++ })
	if err != nil || done.Published != 3 || done.Refused != 0 || published == 0 {
		t.Errorf("replayed %+v, %v", done, err)
	}
	if jobs := pgtest.Value[int](t, receiver, "SELECT count(*) FROM holdfast.inbox"); jobs != 3 {
		t.Errorf("the receiver has %d jobs, want 3", jobs)
	}
}

func TestRelay_DestinationThatIsNotMigratedIsWaitedFor(t *testing.T) {
	t.Parallel()
	sender, receiver := pgtest.New(t), pgtest.New(t)
	enqueueMessage(t, sender, "placed", "order:1", `{"n": 1}`)
	receiver.Exec(t, "ALTER SCHEMA holdfast RENAME TO away")
	startRelay(t, sender, otherInbox(t, receiver))
	pgtest.Eventually(t, patience, "the relay waits", func() bool {
		relays, err := support.Relays(t.Context(), sender.Pool, 10)
		return err == nil && len(relays) == 1 && relays[0].Away == 1 && relays[0].PutOff > 0
	})
	if held := pgtest.Value[int](t, sender, "SELECT count(*) FROM holdfast.inbox WHERE attempts > 0"); held > 0 {
		t.Error("the message has spent an attempt, or is held")
	}
	receiver.Exec(t, "ALTER SCHEMA away RENAME TO holdfast")
	pgtest.Eventually(t, patience, "the message arrives", func() bool {
		return pgtest.Value[int](t, receiver, "SELECT count(*) FROM holdfast.inbox") == 1
	})
}

func TestPublished_AreReadInOrderFromInboxAndArchive(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	// More than a page, in one millisecond and more, some of another queue, some kept.
	database.Exec(t, "INSERT INTO holdfast.queues (name) VALUES ('outbox'), ('other')")
	var jobs []domain.NewJob
	for i := range 2500 {
		queue := "outbox"
		if i%5 == 0 {
			queue = "other"
		}
		jobs = append(jobs, domain.NewJob{Args: domain.RawArgs{JobKind: "placed", Payload: []byte("7")}, Options: []domain.EnqueueOption{domain.OnQueue(queue), domain.Key([]string{"a", "b"}[i%2])}})
	}
	if _, err := domain.EnqueueMany(t.Context(), database.Pool, jobs...); err != nil {
		t.Fatal(err)
	}
	database.Exec(t, `
		WITH moved AS (DELETE FROM holdfast.inbox WHERE seq % 3 <> 0 RETURNING *)
		INSERT INTO holdfast.inbox_archive (id, seq, lease_generation, available_at, created_at, completed_at, partition_bucket, attempts, max_attempts, ordered, queue, kind, partition_key, payload)
		SELECT id, seq, 1, available_at, created_at, now(), partition_bucket, 1, max_attempts, ordered, queue, kind, partition_key, payload FROM moved`)
	database.Exec(t, "UPDATE holdfast.inbox SET status = 'completed', completed_at = now(), finished_at = now() WHERE seq % 2 = 0")
	read := func(filter domain.PublishedFilter, payload bool) (seqs []int64) {
		t.Helper()
		err := domain.WalkPublished(t.Context(), database.Pool, filter, payload, func(page []domain.PublishedJob) (bool, error) {
			for _, job := range page {
				seqs = append(seqs, job.Seq)
				if want := map[bool]string{true: "7", false: "null"}[payload]; string(job.Payload) != want {
					t.Fatalf("payload %s, want %s", job.Payload, want)
				}
			}
			return true, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return seqs
	}
	for name, test := range map[string]struct {
		filter domain.PublishedFilter
		where  string
	}{
		"all":   {domain.PublishedFilter{Queue: "outbox", Since: time.Hour}, "true"},
		"a key": {domain.PublishedFilter{Queue: "outbox", Key: "b", Since: time.Hour}, "partition_key = 'b'"},
		"none":  {domain.PublishedFilter{Queue: "outbox", Since: -time.Hour}, "false"},
	} {
		want := pgtest.Values[int64](t, database, "SELECT seq FROM holdfast.jobs WHERE queue = 'outbox' AND status = 'completed' AND "+test.where+" ORDER BY seq")
		if got := read(test.filter, name == "all"); !slices.Equal(got, want) {
			t.Errorf("%s: %d jobs, want %d in the order of their enqueue", name, len(got), len(want))
		}
	}
	err := domain.WalkPublished(t.Context(), database.Pool, domain.PublishedFilter{Queue: "nosuch"}, false, nil)
	if !errors.Is(err, domain.ErrUnknownQueue) {
		t.Errorf("an unknown queue: %v", err)
	}
}
