package integration

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// step is the payload of the jobs that a producer without Go makes.
type step struct {
	Number int `json:"number"`
}

func (step) Kind() string { return "step" }

func mustPsql(t *testing.T, database *pgtest.Database, script string) string {
	t.Helper()
	said, err := psql(t, database, script)
	if err != nil {
		t.Fatal(err)
	}
	return said
}

// inWaves makes a job for each step of each lane, and counts those that were new.
const inWaves = `
CREATE FUNCTION produce(wave integer) RETURNS bigint LANGUAGE sql AS $$
	SELECT count(*) FILTER (WHERE NOT job.duplicate)
	FROM generate_series(1, 10) AS step (number)
	CROSS JOIN generate_series(1, 8) AS lane (number)
	CROSS JOIN LATERAL holdfast.enqueue(
		'step',
		jsonb_build_object('number', wave * 10 + step.number),
		key => 'lane:' || lane.number,
		queue => 'lanes',
		idempotency_key => concat_ws(':', wave, step.number, lane.number)
	) AS job
$$`

// Nothing but psql produces, and real workers work: each job that was committed has its effect
// once, those of one key in their order, none before its time, and none of a transaction that
// rolled back.
func TestTogether_ProducerInPsqlAndWorkersInGoKeepThePromises(t *testing.T) {
	t.Parallel()
	const keys, steps, waves = 8, 10, 3
	database := pgtest.New(t)
	database.Exec(t, "CREATE TABLE effects (at bigint GENERATED ALWAYS AS IDENTITY, key text NOT NULL, number integer NOT NULL, early boolean NOT NULL)")
	database.Exec(t, inWaves)
	if _, err := domain.SetQueue(t.Context(), database.Pool, "lanes", domain.QueueChange{Ordered: new(true)}); err != nil {
		t.Fatal(err)
	}
	handler := holdfast.HandleTx(database.Pool, func(ctx context.Context, tx pgx.Tx, job holdfast.Job[step]) error {
		_, err := tx.Exec(ctx, "INSERT INTO effects (key, number, early) VALUES ($1, $2, clock_timestamp() < $3)", job.PartitionKey, job.Args.Number, job.AvailableAt)
		if err == nil && job.Args.Number%5 == 0 && job.Attempt == 1 {
			return holdfast.RetryIn(0, errFirstTime)
		}
		return err
	})
	config := quick()
	config.Queues = []string{"lanes", "default"}
	for _, name := range []string{"one", "two"} {
		startWorker(t, database, database.Pool, name, config, handler)
	}
	for wave := range waves {
		// Each job is enqueued twice, and once more in a transaction that rolls back.
		said := mustPsql(t, database, strings.ReplaceAll(`
			BEGIN; SELECT produce(WAVE); ROLLBACK;
			BEGIN; SELECT produce(WAVE); COMMIT;
			SELECT produce(WAVE);
			SELECT duplicate FROM holdfast.enqueue('step', '{"number": WAVE}', key => 'later', delay => '700 ms');`, "WAVE", strconv.Itoa(wave)))
		if said != "80\n80\n0\nf" {
			t.Errorf("the producer was told %q", said)
		}
	}
	untilCompleted(t, database, waves*(keys*steps+1))
	for lane := range keys {
		numbers := pgtest.Values[int](t, database, "SELECT number FROM effects WHERE key = $1 ORDER BY at", fmt.Sprint("lane:", lane+1))
		if len(numbers) != waves*steps || !slices.IsSorted(numbers) || len(slices.Compact(numbers)) != waves*steps {
			t.Errorf("lane %d has the effects %v", lane+1, numbers)
		}
	}
	if early := pgtest.Value[int](t, database, "SELECT count(*) FROM effects WHERE early"); early != 0 {
		t.Errorf("%d jobs ran before their time", early)
	}
}

// A worker that polls once an hour is woken by a commit in psql.
func TestWake_SleepingWorkerIsWokenByPsql(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	startSleepyWorker(t, database, completing())
	for i := range 5 {
		mustPsql(t, database, fmt.Sprintf(`SELECT holdfast.enqueue('note', '{"text": "hello"}', key => 'order:%d')`, i))
		untilCompleted(t, database, i+1)
	}
}

// A producer that dies before its COMMIT has enqueued nothing, and one whose COMMIT returned has.
func TestKept_JobOfPsqlStaysUntilAWorkerComes(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	if _, err := psql(t, database, "BEGIN; SELECT holdfast.enqueue('note'); SELECT 1/0; COMMIT;"); err == nil {
		t.Fatal("the script did not fail")
	}
	id := mustPsql(t, database, "SELECT job_id FROM holdfast.enqueue('note', key => 'k')")
	if ids := pgtest.Values[string](t, database, "SELECT id::text FROM holdfast.inbox"); !slices.Equal(ids, []string{id}) {
		t.Errorf("jobs %v exist, psql was told %s", ids, id)
	}
	startWorker(t, database, database.Pool, "w", quick(), completing())
	untilCompleted(t, database, 1)
}
