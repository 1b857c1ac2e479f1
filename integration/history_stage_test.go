package integration

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// stage is a database on which histories are played, one after the other.
type stage struct {
	*pgtest.Database
	queue     *domain.Queue
	histories int
	columns   []timeColumn
}

// timeColumn is a column whose values move back when time passes.
type timeColumn struct {
	Table  string
	Column []string
}

// historyBackoff is how long a job waits on both sides that was reclaimed: nothing random, and
// whole minutes.
func historyBackoff(attempts int) time.Duration {
	return time.Duration(attempts) * time.Minute
}

func newStage(t *testing.T) *stage {
	t.Helper()
	database := pgtest.New(t)
	database.Exec(t, fmt.Sprintf("UPDATE holdfast.meta SET bucket_count = %d", historyBuckets))
	database.Exec(t, `CREATE OR REPLACE FUNCTION holdfast.backoff(attempts integer) RETURNS interval LANGUAGE sql STRICT
		AS 'SELECT attempts * interval ''1 minute'''`)
	// Whatever it does meanwhile would keep housekeeping from a day of the archive.
	database.Exec(t, "ALTER TABLE holdfast.inbox_archive_default SET (autovacuum_enabled = false)")
	// Many of them take time to read: completed jobs go to the default one until somebody keeps house.
	for _, day := range pgtest.Values[string](t, database, "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'holdfast.inbox_archive'::regclass AND inhrelid <> 'holdfast.inbox_archive_default'::regclass") {
		database.Exec(t, "DROP TABLE "+day)
	}
	rows, _ := database.Pool.Query(t.Context(), `
		SELECT format('%I.%I', table_schema, table_name), array_agg(column_name::text)
		FROM information_schema.columns
		JOIN pg_class ON pg_class.oid = format('%I.%I', table_schema, table_name)::regclass AND relkind IN ('r', 'p') AND NOT relispartition
		WHERE table_schema = 'holdfast' AND data_type = 'timestamp with time zone'
		GROUP BY 1 ORDER BY 1`)
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[timeColumn])
	if err != nil {
		t.Fatal(err)
	}
	return &stage{Database: database, queue: database.Queue(t), columns: columns}
}

// clear empties the tables and returns the time, and the number of the latest job.
func (s *stage) clear(t *rapid.T) (now time.Time, seq int64) {
	var statements strings.Builder
	statements.WriteString("DELETE FROM holdfast.queues WHERE name <> 'default';")
	for _, table := range []string{"inbox", "inbox_archive", "idempotency_keys", "workers", "handled", "fences", "wake", "events"} {
		statements.WriteString("DELETE FROM holdfast." + table + ";")
	}
	s.run(t, statements.String())
	if err := s.Pool.QueryRow(t.Context(), "SELECT clock_timestamp(), nextval('holdfast.inbox_seq')").Scan(&now, &seq); err != nil {
		t.Fatal(err)
	}
	return now, seq
}

// run runs statements in one transaction.
func (s *stage) run(t *rapid.T, statements string) {
	if _, err := s.Pool.Exec(t.Context(), statements, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%s: %v", statements, err)
	}
}

// shift lets time pass in the database, whose clock nobody turns: every time that is written
// down moves back.
func (s *stage) shift(t *rapid.T, d time.Duration) {
	var statements strings.Builder
	for _, table := range s.columns {
		moved := make([]string, len(table.Column))
		for i, column := range table.Column {
			moved[i] = fmt.Sprintf("%s = %s - interval '%d seconds'", column, column, int64(d.Seconds()))
		}
		statements.WriteString("UPDATE " + table.Table + " SET " + strings.Join(moved, ", ") + ";")
	}
	s.run(t, statements.String())
}

// tables reads all that is kept, in one transaction.
func (s *stage) tables(t *rapid.T) (jobs []domain.JobRecord, tables model.Tables) {
	batch := &pgx.Batch{}
	collect(batch, &jobs, `SELECT id, seq, queue, kind, partition_key, partition_bucket, ordered, status, attempts, max_attempts,
		lease_generation, claimed_by, claimed_at, lease_expires_at, available_at, created_at, completed_at, finished_at, finished_by,
		idempotency_key, last_error, headers, payload, archived FROM holdfast.jobs ORDER BY seq`)
	collect(batch, &tables.Keys, "SELECT queue, key, job_id, expires_at FROM holdfast.idempotency_keys ORDER BY queue, key")
	collect(batch, &tables.Marks, "SELECT scope, key, job_id, handled_at FROM holdfast.handled ORDER BY scope, key")
	collect(batch, &tables.Fences, "SELECT resource, token, touched_at FROM holdfast.fences ORDER BY resource")
	collect(batch, &tables.Workers, "SELECT id, status, queues, started_at, last_seen_at, now() - last_seen_at, metadata FROM holdfast.workers ORDER BY id")
	collect(batch, &tables.Bells, "SELECT queue, worker_id FROM holdfast.wake ORDER BY queue, worker_id")
	// What befalls queues and workers has tests of its own.
	collect(batch, &tables.Events, `SELECT id, at, event, job_id, lease_generation, attempt, queue, kind, partition_key, worker_id, actor, detail
		FROM holdfast.events WHERE job_id IS NOT NULL ORDER BY id`)
	if err := s.Pool.SendBatch(t.Context(), batch).Close(); err != nil {
		t.Fatalf("read the tables: %v", err)
	}
	return jobs, tables
}

func collect[T any](batch *pgx.Batch, into *[]T, sql string) {
	batch.Queue(sql).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, pgx.RowToStructByPos[T])
		return err
	})
}

// agree holds that Postgres is in the model's state.
func (h *history) agree(t *rapid.T) {
	jobs, tables := h.tables(t)
	ourJobs, ours := h.model.Jobs(), h.model.Tables()
	for i := range min(len(jobs), len(ourJobs)) {
		h.sameJob(&jobs[i], ourJobs[i])
	}
	for i := range min(len(tables.Keys), len(ours.Keys)) {
		tables.Keys[i].ExpiresAt = h.sameTime(tables.Keys[i].ExpiresAt, ours.Keys[i].ExpiresAt)
	}
	for i := range min(len(tables.Marks), len(ours.Marks)) {
		tables.Marks[i].HandledAt = h.sameTime(tables.Marks[i].HandledAt, ours.Marks[i].HandledAt)
	}
	for i := range min(len(tables.Fences), len(ours.Fences)) {
		tables.Fences[i].TouchedAt = h.sameTime(tables.Fences[i].TouchedAt, ours.Fences[i].TouchedAt)
	}
	for i := range min(len(tables.Workers), len(ours.Workers)) {
		theirs, our := &tables.Workers[i], ours.Workers[i]
		theirs.StartedAt, theirs.LastSeenAt = h.sameTime(theirs.StartedAt, our.StartedAt), h.sameTime(theirs.LastSeenAt, our.LastSeenAt)
		theirs.Silence = h.sameDuration(theirs.Silence, our.Silence)
	}
	h.sameEvents(tables.Events, ours.Events)
	if ourJobs == nil {
		ourJobs = []domain.JobRecord{}
	}
	same(t, h, "jobs", jobs, ourJobs)
	same(t, h, "what is kept beside jobs", tables, ours)
}

// sameJob gives the database's job the model's values of what cannot be equal, if they match.
func (h *history) sameJob(theirs *domain.JobRecord, ours domain.JobRecord) {
	theirs.Seq -= h.seq
	theirs.Generation = h.token(theirs.Generation)
	theirs.AvailableAt, theirs.CreatedAt = h.sameTime(theirs.AvailableAt, ours.AvailableAt), h.sameTime(theirs.CreatedAt, ours.CreatedAt)
	h.sameTimes(&theirs.ClaimedAt, ours.ClaimedAt)
	h.sameTimes(&theirs.LeaseExpiresAt, ours.LeaseExpiresAt)
	h.sameTimes(&theirs.CompletedAt, ours.CompletedAt)
	h.sameTimes(&theirs.FinishedAt, ours.FinishedAt)
}

func valueOr0(number *int64) int64 {
	if number == nil {
		return 0
	}
	return *number
}

// sameEvents puts events in the order in which each claim of each job had them, and gives those
// of the database the model's values of what cannot be equal. Of jobs that one statement has
// changed, none is the first.
func (h *history) sameEvents(theirs, ours []domain.Event) {
	for i, event := range theirs {
		if event.Generation != nil {
			theirs[i].Generation = new(h.token(*event.Generation))
		}
	}
	for _, events := range [][]domain.Event{theirs, ours} {
		slices.SortFunc(events, func(a, b domain.Event) int {
			return cmp.Or(strings.Compare(a.JobID.String(), b.JobID.String()), cmp.Compare(valueOr0(a.Generation), valueOr0(b.Generation)), cmp.Compare(a.ID, b.ID))
		})
	}
	for i := range min(len(theirs), len(ours)) {
		theirs[i].ID, theirs[i].At = ours[i].ID, h.sameTime(theirs[i].At, ours[i].At)
	}
}

// token is the model's for one of the database's; -1 for one that no claim was given.
func (h *history) token(theirs int64) int64 {
	if ours, known := h.tokens[theirs]; known {
		return ours
	}
	return -1
}
