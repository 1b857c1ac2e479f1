package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// The one job, key, lane, worker and resource that every statement of the matrix meets. The
// claim of the first worker is that of every fence: current in some start states, lost in others.
const (
	pairQueue = "q"
	pairToken = 1 << 40 // Lower than any token that a claim draws.

	// A job in bucket 7, as its id says, and the next one of its lane.
	pairJob  = "01900000-0000-7000-8000-000000000007"
	pairNext = "01900000-0000-7000-8000-000100000007"
)

const (
	insertPairQueue = `INSERT INTO holdfast.queues (name) VALUES ('q')`
	insertPairLife  = `WITH worker AS (INSERT INTO holdfast.workers (id, queues) VALUES ('w1', '{q}')),
		bell AS (INSERT INTO holdfast.wake (queue, worker_id) VALUES ('q', 'w1')),
		key AS (INSERT INTO holdfast.idempotency_keys (queue, key, job_id, expires_at) VALUES ('q', 'key', '` + pairJob + `', now() + interval '7 days'))
		INSERT INTO holdfast.fences (resource, token) VALUES ('r', 1099511627776)`
	insertPairJob = `INSERT INTO holdfast.inbox (id, partition_bucket, queue, kind, partition_key, idempotency_key, payload, lease_generation,
		ordered, attempts, max_attempts, status, available_at, claimed_by, claimed_at, lease_expires_at, completed_at, finished_at, finished_by)
		VALUES ('%s', 7, 'q', 'k', 'lane', 'key', '{}', 1099511627776, %s)`
	orderPairQueue = `UPDATE holdfast.queues SET ordered = true WHERE name = 'q'`
	keepPairQueue  = `UPDATE holdfast.queues SET retention_mode = 'keep', keep_for = '0' WHERE name = 'q'`

	// What follows the generation in insertPairJob.
	waitingPair = `1, 3, 'pending', now() - interval '1 hour', NULL, NULL, NULL, NULL, NULL, NULL`
	heldPair    = `1, 3, 'processing', now() - interval '1 hour', 'w1', now(), now() + interval '90 seconds', NULL, NULL, NULL`
	expiredPair = `%d, 3, 'processing', now() - interval '1 hour', 'w1', now() - interval '2 minutes', now() - interval '1 minute', NULL, NULL, NULL`
	keptPair    = `1, 3, 'completed', now() - interval '1 hour', NULL, NULL, NULL, now() - interval '1 second', now() - interval '1 second', 'w1'`
	deadPair    = `3, 3, 'dead_letter', now() - interval '1 hour', NULL, NULL, NULL, NULL, now() - interval '1 hour', 'w1'`
)

func pairJobRow(id string, ordered bool, rest string) string {
	return fmt.Sprintf(insertPairJob, id, fmt.Sprintf("%t, %s", ordered, rest))
}

// pairStarts are the states in which two statements meet: what makes them, in PL/pgSQL.
var pairStarts = map[string][]string{
	"nothing":  {},
	"a queue":  {insertPairQueue},
	"waiting":  {insertPairQueue, insertPairLife, pairJobRow(pairJob, false, waitingPair)}, // The claim of w1 is lost.
	"held":     {insertPairQueue, insertPairLife, pairJobRow(pairJob, false, heldPair)},
	"expired":  {insertPairQueue, insertPairLife, pairJobRow(pairJob, false, fmt.Sprintf(expiredPair, 1))},
	"last try": {insertPairQueue, insertPairLife, pairJobRow(pairJob, false, fmt.Sprintf(expiredPair, 3))},
	"kept":     {insertPairQueue, insertPairLife, keepPairQueue, pairJobRow(pairJob, false, keptPair)},
	"dead":     {insertPairQueue, insertPairLife, pairJobRow(pairJob, false, deadPair)},
	"lane": {
		insertPairQueue, insertPairLife, orderPairQueue,
		pairJobRow(pairJob, true, waitingPair), pairJobRow(pairNext, true, waitingPair),
	},
	"busy lane": {
		insertPairQueue, insertPairLife, orderPairQueue,
		pairJobRow(pairJob, true, heldPair), pairJobRow(pairNext, true, waitingPair),
	},
	// The job is long gone, and what it left behind may go too.
	"old": {
		insertPairQueue,
		`INSERT INTO holdfast.workers (id, queues, last_seen_at) VALUES ('w1', '{q}', now() - interval '1 day')`,
		`INSERT INTO holdfast.idempotency_keys (queue, key, job_id, expires_at) VALUES ('q', 'key', '` + pairJob + `', now() - interval '1 hour')`,
		`INSERT INTO holdfast.handled (scope, key, job_id, handled_at) VALUES ('effect', 'key', '` + pairJob + `', now() - interval '60 days')`,
		`INSERT INTO holdfast.fences (resource, token, touched_at) VALUES ('r', 1099511627776, now() - interval '60 days')`,
	},
	"dead worker": {
		insertPairQueue,
		`INSERT INTO holdfast.workers (id, queues, status, last_seen_at) VALUES ('w1', '{q}', 'dead', now() - interval '60 days')`,
		`INSERT INTO holdfast.wake (queue, worker_id) VALUES ('q', 'w1')`,
	},
	pairDays: {
		insertPairQueue, insertPairLife, pairJobRow(pairJob, false, heldPair),
		`CREATE TABLE holdfast.inbox_archive_20000101 PARTITION OF holdfast.inbox_archive FOR VALUES FROM ('2000-01-01 00:00:00+00') TO ('2000-01-02 00:00:00+00')`,
		`EXECUTE 'DROP TABLE holdfast.inbox_archive_' || to_char((now() AT TIME ZONE 'UTC')::date + 2, 'YYYYMMDD')`,
	},
}

// pairDays is the start in which a day of the archive is due to go and another one is missing.
const pairDays = "days"

var clearPairs = []string{
	`DELETE FROM holdfast.inbox`,
	`DELETE FROM holdfast.inbox_archive`,
	`DELETE FROM holdfast.idempotency_keys`,
	`DELETE FROM holdfast.handled`,
	`DELETE FROM holdfast.fences`,
	`DELETE FROM holdfast.wake`,
	`DELETE FROM holdfast.events`,
	`DELETE FROM holdfast.workers`,
	`DELETE FROM holdfast.queues WHERE name = 'q'`,
}

// readPairs tells the state in what can be compared from one run to the next: times to ten
// minutes, tokens beside that of the start's claim, ids as one of the start's or a new one.
// A line that begins with "broken" is an invariant that does not hold.
var readPairs = strings.NewReplacer("JOB", "'"+pairJob+"'", "NEXT", "'"+pairNext+"'").Replace(`
WITH job AS (
    SELECT job.*, CASE job.id WHEN JOB THEN 'the job' WHEN NEXT THEN 'the next job' ELSE 'a new job' END AS label
    FROM holdfast.jobs AS job
),
line AS (
    SELECT concat_ws(' ', label, CASE WHEN archived THEN 'archived' END, queue, partition_key, partition_bucket, status, 'ordered', ordered,
        'attempts', attempts, max_attempts, 'token', sign(lease_generation - 1099511627776), 'of', claimed_by, 'key', idempotency_key,
        'finished by', finished_by, 'error', last_error, 'due', round(extract(epoch FROM available_at - now()) / 600),
        'lease', round(extract(epoch FROM lease_expires_at - now()) / 600), 'completed', round(extract(epoch FROM completed_at - now()) / 600)) AS text
    FROM job
    UNION ALL
    SELECT concat_ws(' ', 'key', queue, key, 'of', CASE WHEN job_id = JOB THEN 'the job' ELSE 'a new job' END, 'until', round(extract(epoch FROM expires_at - now()) / 600))
    FROM holdfast.idempotency_keys
    UNION ALL
    SELECT concat_ws(' ', 'mark', scope, key, CASE WHEN job_id = JOB THEN 'the job' ELSE 'a new job' END, round(extract(epoch FROM handled_at - now()) / 600))
    FROM holdfast.handled
    UNION ALL
    SELECT concat_ws(' ', 'fence', resource, token - 1099511627776, round(extract(epoch FROM touched_at - now()) / 600)) FROM holdfast.fences
    UNION ALL
    SELECT concat_ws(' ', 'worker', id, status, queues, metadata, round(extract(epoch FROM last_seen_at - now()) / 600)) FROM holdfast.workers
    UNION ALL
    SELECT concat_ws(' ', 'bell', queue, worker_id) FROM holdfast.wake
    UNION ALL
    SELECT concat_ws(' ', 'event', event, CASE job_id WHEN JOB THEN 'the job' WHEN NEXT THEN 'the next job' END, lease_generation - 1099511627776, attempt,
        queue, kind, partition_key, worker_id, 'by', actor, detail)
    FROM holdfast.events
    UNION ALL
    SELECT concat_ws(' ', 'queue', name, 'ordered', ordered, 'paused', paused, max_attempts, retention_mode) FROM holdfast.queues
    UNION ALL
    SELECT concat_ws(' ', count(*), 'days') FROM pg_inherits WHERE inhparent = 'holdfast.inbox_archive'::regclass
    UNION ALL
    SELECT 'broken: a job stands twice: ' || label FROM job GROUP BY id, label HAVING count(*) > 1
    UNION ALL
    SELECT 'broken: more attempts than there may be: ' || label FROM job WHERE attempts > max_attempts
    UNION ALL
    SELECT 'broken: the token fell: ' || label FROM job WHERE label <> 'a new job' AND lease_generation < 1099511627776
    UNION ALL
    SELECT 'broken: two claims have one token' FROM holdfast.inbox WHERE claimed_by IS NOT NULL GROUP BY lease_generation HAVING count(*) > 1
    UNION ALL
    SELECT 'broken: two claims in one lane' FROM holdfast.inbox WHERE ordered AND claimed_by IS NOT NULL GROUP BY partition_key HAVING count(*) > 1
    UNION ALL
    SELECT 'broken: a key was taken for a job that is not there' FROM holdfast.idempotency_keys AS key
    WHERE key.job_id <> JOB AND NOT EXISTS (SELECT FROM job WHERE job.id = key.job_id)
)
SELECT coalesce(string_agg(line.text, E'\n' ORDER BY line.text), '') FROM line`)

// dropFarPairDays leaves today and the next three days, so that the archive is quickly read.
const dropFarPairDays = `DO $$ BEGIN
	FOR ahead IN 4..20 LOOP
		EXECUTE 'DROP TABLE IF EXISTS holdfast.inbox_archive_' || to_char((now() AT TIME ZONE 'UTC')::date + ahead, 'YYYYMMDD');
	END LOOP;
END $$`

// prepareStarts makes a function of each start state: one call, whose plans are kept.
func (l *pairLane) prepareStarts(ctx context.Context) error {
	l.starts = map[string]string{}
	for start, steps := range pairStarts {
		l.starts[start] = fmt.Sprintf("pg_temp.start_%d", len(l.starts))
		body := strings.Join(slices.Concat(clearPairs, steps), ";\n")
		_, err := l.watcher.Exec(ctx, fmt.Sprintf("CREATE FUNCTION %s() RETURNS void LANGUAGE plpgsql AS $start$ BEGIN %s; END $start$", l.starts[start], body))
		if err != nil {
			return fmt.Errorf("make the function of start %q: %w", start, err)
		}
	}
	_, err := l.watcher.Exec(ctx, dropFarPairDays)
	return err
}

// begin puts the database into a start state.
func (l *pairLane) begin(ctx context.Context, start string) error {
	if l.torn {
		if _, err := l.watcher.Exec(ctx, "SELECT holdfast.drop_archive_days(), holdfast.create_archive_days(3)"); err != nil {
			return fmt.Errorf("mend the archive: %w", err)
		}
	}
	l.torn = start == pairDays
	if _, err := l.watcher.Exec(ctx, "SELECT "+l.starts[start]+"()"); err != nil {
		return fmt.Errorf("begin with %q: %w", start, err)
	}
	return nil
}

func (l *pairLane) state(ctx context.Context) (string, error) {
	var state string
	err := l.watcher.QueryRow(ctx, readPairs).Scan(&state)
	return state, err
}
