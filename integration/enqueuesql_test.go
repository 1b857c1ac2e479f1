package integration

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// enqueueSQL calls holdfast.enqueue with the arguments that are given, as SQL.
func enqueueSQL(ctx context.Context, db domain.DBTX, arguments string, values ...any) (result domain.EnqueueResult, err error) {
	err = db.QueryRow(ctx, "SELECT job.job_id, job.duplicate FROM holdfast.enqueue("+arguments+") AS job", values...).Scan(&result.ID, &result.Duplicate)
	return result, err
}

func mustEnqueueSQL(t *testing.T, database *pgtest.Database, arguments string, values ...any) domain.EnqueueResult {
	t.Helper()
	result, err := enqueueSQL(t.Context(), database.Pool, arguments, values...)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// Whichever way a job is enqueued, its row is the same but for what is drawn.
func TestEnqueueSQL_MakesTheRowThatGoMakes(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	if _, err := domain.SetQueue(t.Context(), database.Pool, "lanes", domain.QueueChange{Ordered: new(true), MaxAttempts: new(10)}); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2100, 1, 2, 3, 4, 5, 678000000, time.UTC)
	for name, test := range map[string]struct {
		sql     string
		options []domain.EnqueueOption
	}{
		"defaults":       {"'note'", nil},
		"key":            {`'note', key => 'order:9182 \ ''ä'''`, []domain.EnqueueOption{domain.Key(`order:9182 \ 'ä'`)}},
		"once":           {"'note', idempotency_key => 'one'", []domain.EnqueueOption{domain.Once("two")}},
		"once and key":   {"'note', idempotency_key => 'three', key => 'k'", []domain.EnqueueOption{domain.Once("four"), domain.Key("k")}},
		"ordered queue":  {"'note', queue => 'lanes', key => 'k'", []domain.EnqueueOption{domain.OnQueue("lanes"), domain.Key("k")}},
		"attempts":       {"'note', queue => 'lanes', max_attempts => 3", []domain.EnqueueOption{domain.OnQueue("lanes"), domain.MaxAttempts(3)}},
		"later":          {"'note', run_at => '2100-01-02 03:04:05.678Z'", []domain.EnqueueOption{domain.At(at)}},
		"in a while":     {"'note', delay => '5 minutes'", []domain.EnqueueOption{domain.In(5 * time.Minute)}},
		"headers":        {`'note', headers => '{"a": "b"}'`, []domain.EnqueueOption{domain.Headers(map[string]string{"a": "b"})}},
		"a new queue":    {"'note', queue => 'sql'", []domain.EnqueueOption{domain.OnQueue("go")}},
		"NULL is none":   {"'note', '{}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL", nil},
		"null as header": {"'note', headers => 'null'", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fromSQL := find(t, database, mustEnqueueSQL(t, database, test.sql).ID)
			result, err := domain.Enqueue(t.Context(), database.Pool, domain.RawArgs{JobKind: "note", Payload: json.RawMessage("{}")}, test.options...)
			if err != nil {
				t.Fatal(err)
			}
			wantSameJob(t, fromSQL, find(t, database, result.ID))
		})
	}
}

func wantSameJob(t *testing.T, fromSQL, fromGo domain.JobRecord) {
	t.Helper()
	if want := domain.BucketOf(fromSQL.PartitionKey, 1024); fromSQL.ID.Bucket() != want {
		t.Errorf("the job of key %q is in bucket %d, want %d", fromSQL.PartitionKey, fromSQL.ID.Bucket(), want)
	}
	if late := fromSQL.AvailableAt.Sub(fromGo.AvailableAt).Abs(); late > time.Minute {
		t.Errorf("from SQL it is due at %s, from Go at %s", fromSQL.AvailableAt, fromGo.AvailableAt)
	}
	// What is drawn, and what the test itself made different.
	for _, job := range []*domain.JobRecord{&fromSQL, &fromGo} {
		job.ID, job.Seq, job.CreatedAt, job.AvailableAt = domain.JobID{}, 0, time.Time{}, time.Time{}
		if job.IdempotencyKey != nil && job.PartitionKey == *job.IdempotencyKey || len(job.PartitionKey) >= 13 && len(job.PartitionKey) <= 16 {
			job.PartitionKey, job.Bucket = "", 0
		}
		if job.IdempotencyKey != nil {
			*job.IdempotencyKey = "some"
		}
		if job.Queue == "sql" {
			job.Queue = "go"
		}
	}
	left, right := asJSON(t, fromSQL), asJSON(t, fromGo)
	if left != right {
		t.Errorf("from SQL: %s\nfrom Go:  %s", left, right)
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The message begins with the function and the argument, and names the argument in the field
// for it, so that a program need not read the message.
func TestEnqueueSQL_InvalidArgumentsAreNamed(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	long := "repeat('x', 201)"
	for arguments, message := range map[string]string{
		"NULL":                               "kind: is missing",
		"''":                                 "kind: has 0 characters, must have 1 to 200",
		"repeat('🐘', 201)":                   "kind: has 201 characters, must have 1 to 200",
		"'k', NULL":                          "payload: is missing; the null of JSON is written 'null'",
		"'k', to_jsonb(repeat('x', 262145))": "payload: has 262157 bytes as stored, 262144 at most",
		"'k', queue => ''":                   "queue: has 0 characters, must have 1 to 200",
		"'k', key => ''":                     "key: has 0 characters, must have 1 to 200",
		"'k', key => " + long:                "key: has 201 characters, must have 1 to 200",
		"'k', idempotency_key => ''":         "idempotency_key: has 0 characters, must have 1 to 200",
		"'k', delay => '-5 minutes'":         "delay: -00:05:00 is negative",
		"'k', delay => '1001 years'":         "delay: 1001 years is longer than 1000 years",
		"'k', run_at => 'infinity'":          "run_at: infinity is after the year 9998",
		"'k', max_attempts => 0":             "max_attempts: 0 is not between 1 and 1000000",
		"'k', max_attempts => 1000001":       "max_attempts: 1000001 is not between 1 and 1000000",
		"'k', headers => '[]'":               "headers: must be an object of strings",
		"'k', headers => '{\"a\": 1}'":       "headers: must be an object of strings",
		"'k', headers => jsonb_build_object('a', repeat('x', 8193))": "headers: have 8210 bytes as stored, 8192 at most",
	} {
		_, err := enqueueSQL(t.Context(), database.Pool, arguments)
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != "22023" || refused.Message != "holdfast.enqueue: "+message || !strings.HasPrefix(message, refused.ColumnName+":") {
			t.Errorf("enqueue(%s) says %v", arguments, err)
		}
	}
	if jobs := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox"); jobs != 0 {
		t.Errorf("%d jobs were added", jobs)
	}
}

// A document that stands compressed in another table is measured as it is, not as it is stored
// there.
func TestEnqueueSQL_CompressedPayloadHasTheSameLimit(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	database.Exec(t, "CREATE TABLE documents (body jsonb)")
	database.Exec(t, "INSERT INTO documents SELECT to_jsonb(repeat('x', 1000000))")
	if stored := pgtest.Value[int](t, database, "SELECT pg_column_size(body) FROM documents"); stored > 262144 {
		t.Fatalf("the document takes %d bytes: it is not compressed", stored)
	}
	_, err := database.Pool.Exec(t.Context(), "SELECT holdfast.enqueue('k', document.body) FROM documents AS document")
	if err == nil || !strings.Contains(err.Error(), "payload: has 1000012 bytes as stored") {
		t.Errorf("it says %v", err)
	}
}

func TestEnqueueSQL_RingsWhenGoDoes(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	if err := queue.Arm(t.Context(), "w1", []string{"mail", "quiet"}); err != nil {
		t.Fatal(err)
	}
	enqueue(t, database, domain.OnQueue("quiet"), domain.NoRing())
	database.Exec(t, "UPDATE holdfast.queues SET ring = false WHERE name = 'quiet'")
	mustEnqueueSQL(t, database, "'note', queue => 'mail', idempotency_key => 'there', ring => false")
	heard := newEar(t, database)
	for _, silent := range []string{
		"queue => 'mail', ring => false", "queue => 'mail', delay => '1 minute'", "queue => 'mail', idempotency_key => 'there'",
		"queue => 'quiet'", "queue => 'other'",
	} {
		mustEnqueueSQL(t, database, "'note', "+silent)
	}
	first := mustEnqueueSQL(t, database, "'note', queue => 'mail'")
	second := mustEnqueueSQL(t, database, "'note', queue => 'mail', idempotency_key => 'new', delay => '1 second'")
	want := []domain.Ring{{Queue: "mail", Bucket: first.ID.Bucket()}, {Queue: "mail", Bucket: second.ID.Bucket()}}
	pgtest.Eventually(t, patience, "two rings are heard", func() bool { return heard.count() >= 2 })
	if !slices.Equal(heard.rings, want) {
		t.Errorf("heard %v, want %v", heard.rings, want)
	}
}

// Producers in SQL and in Go that race for a key make one job of it, and every second one that
// rolls back leaves the key to the others.
func TestOncePerKey_ProducersInSQLAndGoMakeOneJob(t *testing.T) {
	t.Parallel()
	const producers = 32
	database := pgtest.New(t)
	connections := openConnections(t, database, producers)
	results := make([]domain.EnqueueResult, producers)
	failures := make([]error, producers)
	atOnce(producers, func(i int) {
		failures[i] = pgx.BeginFunc(t.Context(), connections[i], func(tx pgx.Tx) (err error) {
			if i%2 == 0 {
				results[i], err = domain.Enqueue(t.Context(), tx, note{}, domain.OnQueue("new"), domain.Once("receipt:9182"))
			} else {
				results[i], err = enqueueSQL(t.Context(), tx, "'note', queue => 'new', idempotency_key => 'receipt:9182'")
			}
			if err == nil && i%4 < 2 {
				err = errChangedMind
			}
			return err
		})
	})
	ids := pgtest.Values[string](t, database, "SELECT id::text FROM holdfast.inbox")
	if len(ids) != 1 {
		t.Fatalf("jobs %v exist, want one", ids)
	}
	for i, err := range failures {
		if i%4 < 2 && !errors.Is(err, errChangedMind) || i%4 >= 2 && (err != nil || results[i].ID.String() != ids[0]) {
			t.Errorf("producer %d was told %s, %v", i, results[i].ID, err)
		}
	}
	database.Exec(t, "UPDATE holdfast.idempotency_keys SET expires_at = now() - interval '1 second'")
	if again := mustEnqueueSQL(t, database, "'note', queue => 'new', idempotency_key => 'receipt:9182'"); again.Duplicate || again.ID.String() == ids[0] {
		t.Errorf("after its window the key still stands for the first job: %+v", again)
	}
}

// A set is a query that calls the function once a row.
func TestEnqueueSQL_ASetIsAQuery(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	added := pgtest.Values[string](t, database, `
		SELECT job.job_id::text
		FROM generate_series(1, 500) AS image (id)
		CROSS JOIN LATERAL holdfast.enqueue('resize', jsonb_build_object('image', image.id), idempotency_key => 'image:' || image.id % 100) AS job
		WHERE NOT job.duplicate
		ORDER BY image.id`)
	if jobs := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox"); len(added) != 100 || jobs != 100 {
		t.Errorf("%d jobs were said to be new, %d are there; want 100", len(added), jobs)
	}
}

// What Go refuses, SQL refuses too, with the argument's name; the other way round for all that
// Go can say.
func FuzzLimits_EnqueueHasOneVerdictInGoAndSQL(f *testing.F) {
	f.Add("kind", "queue", "key", "once", []byte(`{"text": "ä"}`), int64(0), 5)
	f.Add(strings.Repeat("🐘", 200), "queue", "", "", []byte(`"`+strings.Repeat("x", 262132)+`"`), int64(1), 1)
	f.Add("kind", strings.Repeat("🐘", 201), "", "", []byte(`"`+strings.Repeat("x", 262133)+`"`), int64(1), 1)
	f.Add("kind", "q", strings.Repeat("k", 201), "", []byte("1"), int64(-1), 1_000_000)
	f.Add("kind", "q", "k", strings.Repeat("k", 201), []byte("null"), int64(time.Hour), 1_000_001)
	f.Add("", "q", "k", "o", []byte("[]"), int64(0), 0)
	conn := pgtest.New(f).Conn(f)
	f.Fuzz(func(t *testing.T, kind, queue, key, once string, payload []byte, delay int64, attempts int) {
		if !json.Valid(payload) || attempts != int(int32(attempts)) || strings.ContainsRune(kind+queue+key+once, 0) {
			t.Skip("SQL cannot be told")
		}
		options := []domain.EnqueueOption{domain.OnQueue(queue), domain.In(time.Duration(delay)), domain.MaxAttempts(attempts)}
		if key != "" {
			options = append(options, domain.Key(key))
		}
		if once != "" {
			options = append(options, domain.Once(once))
		}
		var inGo, inSQL error
		rolledBack(t, conn, func(tx *counted) {
			_, inGo = domain.Enqueue(t.Context(), tx, domain.RawArgs{JobKind: kind, Payload: payload}, options...)
		})
		rolledBack(t, conn, func(tx *counted) {
			_, inSQL = enqueueSQL(t.Context(), tx,
				"$1, $2, queue => $3, key => NULLIF($4::text, ''), idempotency_key => NULLIF($5::text, ''), delay => $6, max_attempts => $7",
				kind, json.RawMessage(payload), queue, key, once, time.Duration(delay), attempts)
		})
		// Go measures a document also as it is written, which may be longer.
		longer := inSQL == nil && len(payload) > 256<<10
		if (inGo == nil) != (inSQL == nil) && !longer {
			t.Fatalf("%q %q %q %q %d bytes %d %d: %v in Go, %v in SQL", kind, queue, key, once, len(payload), delay, attempts, inGo, inSQL)
		}
	})
}
