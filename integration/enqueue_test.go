package integration

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

func TestTogether_JobExistsIfAndOnlyIfItsTransactionCommits(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	for _, commits := range []bool{true, false} {
		tx, err := database.Pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		result, err := domain.Enqueue(t.Context(), tx, note{}, domain.OnQueue("invoices"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := domain.FindJob(t.Context(), database.Pool, result.ID); !errors.Is(err, domain.ErrNotFound) {
			t.Fatalf("before the commit others see the job: %v", err)
		}
		if commits {
			err = tx.Commit(t.Context())
		} else {
			err = tx.Rollback(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := domain.FindJob(t.Context(), database.Pool, result.ID); (err == nil) != commits {
			t.Fatalf("committed %v, but looking the job up says: %v", commits, err)
		}
	}
}

func TestOncePerKey_ManyProducersMakeOneJob(t *testing.T) {
	t.Parallel()
	const producers = 64
	database := pgtest.New(t)
	connections := openConnections(t, database, producers)
	results := make([]domain.EnqueueResult, producers)
	failures := make([]error, producers)
	atOnce(producers, func(i int) {
		results[i], failures[i] = domain.Enqueue(t.Context(), connections[i], note{}, domain.Once("receipt:9182"))
	})
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
	added := 0
	for _, result := range results {
		if result.ID != results[0].ID {
			t.Fatalf("two producers got two ids: %s and %s", result.ID, results[0].ID)
		}
		if !result.Duplicate {
			added++
		}
	}
	if jobs := pgtest.Value[int64](t, database, "SELECT count(*) FROM holdfast.inbox"); added != 1 || jobs != 1 {
		t.Fatalf("%d producers were told that they added the job, %d jobs exist; want one of each", added, jobs)
	}
}

// Every second producer rolls back, whether or not it won; somebody must win in the end.
func TestOncePerKey_WinnersThatRollBackLeaveTheKeyToTheOthers(t *testing.T) {
	t.Parallel()
	const producers = 64
	database := pgtest.New(t)
	connections := openConnections(t, database, producers)
	results := make([]domain.EnqueueResult, producers)
	failures := make([]error, producers)
	atOnce(producers, func(i int) {
		failures[i] = pgx.BeginFunc(t.Context(), connections[i], func(tx pgx.Tx) (err error) {
			results[i], err = domain.Enqueue(t.Context(), tx, note{}, domain.Once("receipt:9182"))
			if err == nil && i%2 == 0 {
				err = errChangedMind
			}
			return err
		})
	})
	var committed domain.JobID
	for i, err := range failures {
		switch {
		case i%2 == 0 && !errors.Is(err, errChangedMind) || i%2 == 1 && err != nil:
			t.Fatalf("producer %d: %v", i, err)
		case i%2 == 0:
		case committed == domain.JobID{}:
			committed = results[i].ID
		case committed != results[i].ID:
			t.Fatalf("two producers committed two ids: %s and %s", committed, results[i].ID)
		}
	}
	ids := pgtest.Values[string](t, database, "SELECT id::text FROM holdfast.inbox")
	if len(ids) != 1 || ids[0] != committed.String() {
		t.Fatalf("jobs %v exist, want just %s, which the committing producers were told", ids, committed)
	}
}

var errChangedMind = errors.New("the producer rolls back")

func TestOncePerKey_ExpiredKeyRacedByManyMakesOneNewJob(t *testing.T) {
	t.Parallel()
	const producers = 16
	database := pgtest.New(t)
	connections := openConnections(t, database, producers)
	first := enqueue(t, database, domain.Once("receipt:9182"))
	database.Exec(t, "UPDATE holdfast.idempotency_keys SET expires_at = now() - interval '1 second'")
	results := make([]domain.EnqueueResult, producers)
	failures := make([]error, producers)
	atOnce(producers, func(i int) {
		results[i], failures[i] = domain.Enqueue(t.Context(), connections[i], note{}, domain.Once("receipt:9182"))
	})
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
	for _, result := range results {
		if result.ID != results[0].ID || result.ID == first {
			t.Fatalf("producers got %s and %s; the job of the expired key is %s", result.ID, results[0].ID, first)
		}
	}
	if jobs := pgtest.Value[int64](t, database, "SELECT count(*) FROM holdfast.inbox"); jobs != 2 {
		t.Fatalf("%d jobs exist, want the old one and one new one", jobs)
	}
}

func TestOncePerKey_DuplicateTellsTheStateOfItsJob(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end  func(t *testing.T, database *pgtest.Database, queue *domain.Queue)
		want domain.Status
	}{
		"pending": {func(*testing.T, *pgtest.Database, *domain.Queue) {}, domain.StatusPending},
		"processing": {func(t *testing.T, _ *pgtest.Database, queue *domain.Queue) {
			t.Helper()
			claimOne(t, queue, "w1")
		}, domain.StatusProcessing},
		"failed": {func(t *testing.T, _ *pgtest.Database, queue *domain.Queue) {
			t.Helper()
			mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{Verdict: domain.Fail}, domain.StatusFailed)
		}, domain.StatusFailed},
		"dead-lettered": {func(t *testing.T, _ *pgtest.Database, queue *domain.Queue) {
			t.Helper()
			mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{Verdict: domain.Retry}, domain.StatusDeadLetter)
		}, domain.StatusDeadLetter},
		"archived": {func(t *testing.T, _ *pgtest.Database, queue *domain.Queue) {
			t.Helper()
			mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{}, domain.StatusCompleted)
		}, domain.StatusCompleted},
		"purged": {func(t *testing.T, database *pgtest.Database, _ *domain.Queue) {
			t.Helper()
			database.Exec(t, "DELETE FROM holdfast.inbox")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			first := enqueue(t, database, domain.Once("receipt:9182"), domain.MaxAttempts(1))
			test.end(t, database, database.Queue(t))
			again, err := domain.Enqueue(t.Context(), database.Pool, note{}, domain.Once("receipt:9182"))
			if err != nil {
				t.Fatal(err)
			}
			if !again.Duplicate || again.ID != first || again.State != test.want {
				t.Fatalf("second enqueue: %+v, want a duplicate of %s in state %q", again, first, test.want)
			}
		})
	}
}

func TestOncePerKey_KeyIsOfItsQueueAlone(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	one := enqueue(t, database, domain.Once("k"), domain.OnQueue("one"))
	two := enqueue(t, database, domain.Once("k"), domain.OnQueue("two"))
	if one == two {
		t.Fatal("one key made one job of two queues")
	}
}

// The window runs from the time the job may first run: a job for next month must not lose
// its key next week.
func TestOncePerKey_WindowOfADelayedJobBeginsWhenItMayRun(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	enqueue(t, database, domain.Once("k"), domain.In(30*24*time.Hour))
	if !pgtest.Value[bool](t, database, "SELECT expires_at > now() + interval '36 days' FROM holdfast.idempotency_keys") {
		t.Fatal("the key expires before the job has had its dedupe window")
	}
}

func TestOncePerKey_SetsAnswerInTheirOrder(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	known := enqueue(t, database, domain.Once("known"))
	set := func(keys ...string) (jobs []domain.NewJob) {
		for _, key := range keys {
			job := domain.NewJob{Args: note{Text: key}}
			if key != "" {
				job.Options = []domain.EnqueueOption{domain.Once(key)}
			}
			jobs = append(jobs, job)
		}
		return jobs
	}
	results, err := domain.EnqueueMany(t.Context(), database.Pool, set("z", "", "known", "a", "z", "")...)
	if err != nil {
		t.Fatal(err)
	}
	for i, duplicate := range []bool{false, false, true, false, true, false} {
		if results[i].Duplicate != duplicate {
			t.Errorf("job %d: duplicate is %v, want %v", i, results[i].Duplicate, duplicate)
		}
	}
	if results[2].ID != known || results[2].State != domain.StatusPending {
		t.Errorf("the known key answered %+v, want %s, pending", results[2], known)
	}
	if results[4].ID != results[0].ID {
		t.Errorf("a key that stands twice in a set made two jobs")
	}
	texts := pgtest.Values[string](t, database, "SELECT payload->>'text' FROM holdfast.inbox WHERE idempotency_key IS DISTINCT FROM 'known' ORDER BY seq")
	if got := strings.Join(texts, ","); got != "z,,a," {
		t.Errorf("seq does not follow the order of the set: %q", got)
	}
}

func TestOncePerKey_SetsInOppositeOrderDoNotDeadlock(t *testing.T) {
	t.Parallel()
	const producers = 8
	database := pgtest.New(t)
	connections := openConnections(t, database, producers)
	failures := make([]error, producers)
	atOnce(producers, func(i int) {
		for round := range 20 {
			jobs := make([]domain.NewJob, 20)
			for k := range jobs {
				key := k
				if i%2 == 0 {
					key = len(jobs) - 1 - k
				}
				jobs[k] = domain.NewJob{Args: note{}, Options: []domain.EnqueueOption{domain.Once(string(rune('a'+round)) + string(rune('A'+key)))}}
			}
			_, err := domain.EnqueueMany(t.Context(), connections[i], jobs...)
			failures[i] = errors.Join(failures[i], err)
		}
	})
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
	if jobs := pgtest.Value[int64](t, database, "SELECT count(*) FROM holdfast.inbox"); jobs != 400 {
		t.Fatalf("%d jobs for 400 keys", jobs)
	}
}

func TestEnqueue_UnknownQueueIsCreatedWithTheDefaults(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	const producers = 8
	connections := openConnections(t, database, producers)
	failures := make([]error, producers)
	atOnce(producers, func(i int) {
		_, failures[i] = domain.Enqueue(t.Context(), connections[i], note{}, domain.OnQueue("invoices"))
	})
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
	enqueueNotes(t, database, 2, domain.OnQueue("reports"))
	asked := database.Executed("EnsureQueue")
	enqueueNotes(t, database, 2, domain.OnQueue("reports"))
	enqueue(t, database, domain.OnQueue("reports"))
	if again := database.Executed("EnsureQueue"); again != asked {
		t.Fatalf("enqueues to a queue that exists tried to create it %d times", again-asked)
	}
	if jobs := pgtest.Value[int64](t, database, "SELECT count(*) FROM holdfast.inbox WHERE queue = 'reports'"); jobs != 5 {
		t.Fatalf("%d jobs of the queue, want 5", jobs)
	}
	queues := pgtest.Values[string](t, database, "SELECT name || ':' || max_attempts || ':' || retention_mode FROM holdfast.queues ORDER BY name")
	if got := strings.Join(queues, " "); got != "default:5:archive invoices:5:archive reports:5:archive" {
		t.Fatalf("queues are %q", got)
	}
}

func TestEnqueue_IDCarriesTheBucketOfTheKey(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	id := enqueue(t, database, domain.Key("order:9182"))
	for _, more := range enqueueNotes(t, database, 50) {
		job := find(t, database, more)
		if job.Bucket != more.Bucket() || job.Bucket != domain.BucketOf(job.PartitionKey, 1024) {
			t.Fatalf("job of key %q is in bucket %d; its id says %d, the hash %d", job.PartitionKey, job.Bucket, more.Bucket(), domain.BucketOf(job.PartitionKey, 1024))
		}
	}
	if id.Bucket() != domain.BucketOf("order:9182", 1024) {
		t.Fatalf("id %s carries bucket %d", id, id.Bucket())
	}
}

func TestEnqueue_OptionsReachTheRow(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	at := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	id := enqueue(t, database, domain.Key("order:9182"), domain.Once("receipt:9182"), domain.At(at),
		domain.MaxAttempts(9), domain.Headers(map[string]string{"traceparent": "00-1"}))
	job := find(t, database, id)
	if job.PartitionKey != "order:9182" || *job.IdempotencyKey != "receipt:9182" || !job.AvailableAt.Equal(at) || job.MaxAttempts != 9 {
		t.Errorf("row is %+v", job)
	}
	var headers map[string]string
	if err := json.Unmarshal(job.Headers, &headers); err != nil || headers["traceparent"] != "00-1" {
		t.Errorf("headers are %s", job.Headers)
	}
	past := find(t, database, enqueue(t, database, domain.At(at.Add(-48*time.Hour))))
	if past.AvailableAt.Before(past.CreatedAt.Add(-time.Second)) {
		t.Errorf("a time in the past made the job available at %s, before it was enqueued at %s", past.AvailableAt, past.CreatedAt)
	}
	if past.Headers != nil {
		t.Errorf("a job without headers has %s", past.Headers)
	}
}

func TestEnqueue_RefusesWhatPostgresCannotStore(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	for name, args := range map[string]domain.Args{
		"invalid JSON":             domain.RawArgs{JobKind: "note", Payload: json.RawMessage(`{"a":`)},
		"an escaped NUL":           domain.RawArgs{JobKind: "note", Payload: json.RawMessage(`{"a":"\u0000"}`)},
		"300 KB of text":           note{Text: strings.Repeat("x", 300<<10)},
		"100 KB that store larger": domain.RawArgs{JobKind: "note", Payload: json.RawMessage("[" + strings.Repeat("1,", 50<<10) + "1]")},
		"half a character":         domain.RawArgs{JobKind: "note", Payload: json.RawMessage(`"\ud800"`)},
		"a number without end":     domain.RawArgs{JobKind: "note", Payload: json.RawMessage(`1e200000`)},
		"no kind":                  domain.RawArgs{Payload: json.RawMessage(`{}`)},
	} {
		_, err := domain.Enqueue(t.Context(), database.Pool, args)
		var invalid *domain.InvalidError
		if !errors.As(err, &invalid) {
			t.Errorf("%s: error %v, want an InvalidError", name, err)
		}
	}
	if jobs := pgtest.Value[int64](t, database, "SELECT count(*) FROM holdfast.inbox"); jobs != 0 {
		t.Errorf("%d jobs were added all the same", jobs)
	}
}

func TestEnqueue_UnmigratedDatabaseSaysWhichCommandHelps(t *testing.T) {
	t.Parallel()
	_, err := domain.Enqueue(t.Context(), pgtest.Empty(t).Pool, note{})
	wantError(t, err, domain.ErrNotMigrated)
	if !strings.Contains(err.Error(), "holdfast migrate up") {
		t.Fatalf("the error does not name the command: %v", err)
	}
}

// openConnections opens connections beside the pool, which is smaller.
func openConnections(t *testing.T, database *pgtest.Database, n int) []*pgx.Conn {
	t.Helper()
	connections := make([]*pgx.Conn, n)
	for i := range connections {
		connections[i] = database.Conn(t)
	}
	return connections
}
