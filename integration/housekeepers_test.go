package integration

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// The election spares work; it is not what keeps housekeeping right. Four housekeepers at once
// do what one does, each thing once.
func TestHousekeeping_FourAtOnceDoWhatOneDoes(t *testing.T) {
	t.Parallel()
	alone, together := pgtest.New(t), pgtest.New(t)
	neglect(t, alone)
	neglect(t, together)
	want := keepWholeHouse(t, alone.Queue(t))
	queues := [4]*domain.Queue{together.Queue(t), together.Queue(t), together.Queue(t), together.Queue(t)}
	var mutex sync.Mutex
	var got houseWork
	atOnce(len(queues), func(i int) {
		done := keepWholeHouse(t, queues[i])
		mutex.Lock()
		defer mutex.Unlock()
		got.add(done)
	})
	if got != want || got.reclaimed != neglectedLeases {
		t.Errorf("four housekeepers did together\n%+v, one does\n%+v", got, want)
	}
	if left, wanted := houseOf(t, together), houseOf(t, alone); left != wanted {
		t.Errorf("four housekeepers left\n%s\none leaves\n%s", left, wanted)
	}
	if again := keepWholeHouse(t, queues[0]); again != (houseWork{}) {
		t.Errorf("after four housekeepers was left to do: %+v", again)
	}
}

// houseWork counts what housekeepers did.
type houseWork struct {
	reclaimed, workersDied                                     int
	workersForgotten, bellsDisarmed, jobsArchived, keysExpired int64
	marksExpired, fencesExpired, daysCreated, daysDropped      int64
}

func (w *houseWork) add(other houseWork) {
	w.reclaimed += other.reclaimed
	w.workersDied += other.workersDied
	w.workersForgotten += other.workersForgotten
	w.bellsDisarmed += other.bellsDisarmed
	w.jobsArchived += other.jobsArchived
	w.keysExpired += other.keysExpired
	w.marksExpired += other.marksExpired
	w.fencesExpired += other.fencesExpired
	w.daysCreated += other.daysCreated
	w.daysDropped += other.daysDropped
}

// keepWholeHouse does all that a cycle of a worker does.
func keepWholeHouse(t *testing.T, queue *domain.Queue) houseWork {
	t.Helper()
	reclaimed, _, err := queue.Reclaim(t.Context(), 0)
	if err != nil {
		t.Error(err)
	}
	report, err := queue.KeepHouse(t.Context(), houseRules)
	if err != nil {
		t.Error(err)
	}
	return houseWork{
		len(reclaimed), len(report.WorkersDied),
		report.WorkersForgotten, report.BellsDisarmed, report.JobsArchived, report.KeysExpired,
		report.MarksExpired, report.FencesExpired, report.DaysCreated, report.DaysDropped,
	}
}

// neglectedLeases are more than a batch.
const neglectedLeases = 1100

// neglect leaves everything to do that housekeeping does.
func neglect(t *testing.T, database *pgtest.Database) {
	t.Helper()
	queue := database.Queue(t)
	for i := range 6 {
		join(t, queue, fmt.Sprint("w", i))
	}
	if err := queue.Arm(t.Context(), "w0", []string{domain.DefaultQueue}); err != nil {
		t.Fatal(err)
	}
	database.Exec(t, "UPDATE holdfast.workers SET last_seen_at = now() - interval '1 hour'")
	database.Exec(t, "UPDATE holdfast.workers SET last_seen_at = now() - interval '25 hours', status = 'dead' WHERE id IN ('w4', 'w5')")

	database.Exec(t, "UPDATE holdfast.queues SET retention_mode = 'keep', keep_for = '0 seconds'")
	for i := range 50 {
		enqueue(t, database, domain.Once(strconv.Itoa(i)))
	}
	for _, job := range claim(t, queue, "w1", 50) {
		mustSettle(t, queue, job, domain.Outcome{}, domain.StatusCompleted)
	}
	database.Exec(t, "UPDATE holdfast.idempotency_keys SET expires_at = now() - interval '1 second'")

	enqueueNotes(t, database, 100, domain.MaxAttempts(1))
	enqueueNotes(t, database, neglectedLeases-100)
	claim(t, queue, "w2", neglectedLeases)
	database.Exec(t, "UPDATE holdfast.inbox SET lease_expires_at = now() - interval '1 second' WHERE status = 'processing'")

	for i := range 50 {
		if _, err := domain.MarkHandled(t.Context(), database.Pool, domain.NewJobID(time.Now(), i), "charge"); err != nil {
			t.Fatal(err)
		}
		if err := domain.Guard(t.Context(), database.Pool, strconv.Itoa(i), domain.Claim{Generation: 7}); err != nil {
			t.Fatal(err)
		}
	}
	database.Exec(t, "UPDATE holdfast.handled SET handled_at = now() - interval '31 days'")
	database.Exec(t, "UPDATE holdfast.fences SET touched_at = now() - interval '31 days'")

	dropDays(t, database)
	for _, day := range []string{"2001-02-03", "2001-02-04", "2001-02-05"} {
		next := pgtest.Value[string](t, database, "SELECT ($1::text::date + 1)::text", day)
		name := pgtest.Value[string](t, database, "SELECT 'inbox_archive_' || to_char($1::text::date, 'YYYYMMDD')", day)
		database.Exec(t, fmt.Sprintf("CREATE TABLE holdfast.%s PARTITION OF holdfast.inbox_archive FOR VALUES FROM ('%s 00:00:00+00') TO ('%s 00:00:00+00')", name, day, next))
	}
}

// houseOf describes what is there.
func houseOf(t *testing.T, database *pgtest.Database) string {
	t.Helper()
	return pgtest.Value[string](t, database, `
		SELECT string_agg(line, E'\n' ORDER BY line) FROM (
			SELECT format('%s jobs %s after %s attempts', count(*), status, attempts) FROM holdfast.inbox GROUP BY status, attempts
			UNION ALL SELECT format('%s archived', count(*)) FROM holdfast.inbox_archive
			UNION ALL SELECT format('worker %s %s', id, status) FROM holdfast.workers
			UNION ALL SELECT format('%s keys, %s marks, %s fences, %s bells',
				(SELECT count(*) FROM holdfast.idempotency_keys), (SELECT count(*) FROM holdfast.handled),
				(SELECT count(*) FROM holdfast.fences), (SELECT count(*) FROM holdfast.wake))
			UNION ALL SELECT 'partition ' || inhrelid::regclass FROM pg_inherits WHERE inhparent = 'holdfast.inbox_archive'::regclass
		) AS house (line)`)
}
