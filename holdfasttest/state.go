package holdfasttest

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
)

// ExpireLease makes the lease of a claimed job end a second ago, as if its worker had died a
// lease ago. The next housekeeping takes the job back, and so does Drain.
func ExpireLease(tb testing.TB, db holdfast.DBTX, id holdfast.JobID) {
	tb.Helper()
	touch(tb, db, id, processing, `
		UPDATE holdfast.inbox
		SET lease_expires_at = clock_timestamp() - interval '1 second'
		WHERE id = $1
			AND status = 'processing'`)
}

// MakeDue ends the wait of a pending job, as if its delay or backoff had passed.
func MakeDue(tb testing.TB, db holdfast.DBTX, id holdfast.JobID) {
	tb.Helper()
	touch(tb, db, id, pending, `
		UPDATE holdfast.inbox
		SET available_at = now()
		WHERE id = $1
			AND status = 'pending'`)
}

func touch(tb testing.TB, db holdfast.DBTX, id holdfast.JobID, want domain.Status, sql string) {
	tb.Helper()
	tag, err := db.Exec(tb.Context(), sql, id.String())
	if err != nil {
		tb.Fatalf("holdfasttest: %v", err)
	}
	if tag.RowsAffected() != 1 {
		tb.Fatalf("holdfasttest: job %s is %s, want %s", id, statusOf(tb, db, id), want)
	}
}

// The states that a job must be in, by their short names.
const (
	pending    = domain.StatusPending
	processing = domain.StatusProcessing
)

// claimOne gives one job, in a state, to another claim. A worker's statements claim what is
// due; a test names the job.
const claimOne = `
	UPDATE holdfast.inbox AS job
	SET
		status = 'processing',
		claimed_by = 'holdfasttest',
		claimed_at = clock_timestamp(),
		lease_expires_at = clock_timestamp() + interval '90 seconds',
		lease_generation = (SELECT meta.epoch FROM holdfast.meta AS meta WHERE meta.singleton) * 1099511627776 + nextval('holdfast.generation_seq'),
		attempts = job.attempts + 1
	FROM holdfast.queues AS queue
	WHERE job.id = $1
		AND job.status = $2::text::holdfast.inbox_status
		AND job.attempts < job.max_attempts
		AND queue.name = job.queue
	RETURNING
		job.partition_bucket,
		job.lease_generation,
		job.claimed_by,
		job.seq,
		job.queue,
		job.kind,
		job.partition_key,
		COALESCE(job.idempotency_key, ''),
		job.attempts,
		job.max_attempts,
		job.available_at,
		GREATEST(clock_timestamp() - job.available_at, interval '0'),
		job.created_at,
		job.headers,
		job.payload,
		queue.retention_mode::text`

// claim gives a job that is in the state given to another claim, due or not.
func claim(tb testing.TB, db holdfast.DBTX, id holdfast.JobID, in domain.Status) domain.ClaimedJob {
	tb.Helper()
	job := domain.ClaimedJob{Claim: domain.Claim{ID: id}}
	err := db.QueryRow(tb.Context(), claimOne, id.String(), string(in)).Scan(
		&job.Bucket, &job.Generation, &job.WorkerID, &job.Seq, &job.Queue, &job.Kind, &job.PartitionKey, &job.IdempotencyKey,
		&job.Attempt, &job.MaxAttempts, &job.AvailableAt, &job.Waited, &job.CreatedAt, &job.Headers, &job.Payload, &job.Retention)
	switch {
	case errors.Is(err, pgx.ErrNoRows) && statusOf(tb, db, id) == string(in):
		tb.Fatalf("holdfasttest: job %s has no attempt left for another claim: enqueue it with holdfast.MaxAttempts of 2 or more", id)
	case errors.Is(err, pgx.ErrNoRows):
		tb.Fatalf("holdfasttest: job %s is %s, want %s", id, statusOf(tb, db, id), in)
	case err != nil:
		tb.Fatalf("holdfasttest: claim job %s: %v", id, err)
	}
	return job
}

// statusOf is a job's state in words, for a failure.
func statusOf(tb testing.TB, db holdfast.DBTX, id holdfast.JobID) string {
	tb.Helper()
	job, err := domain.FindJob(tb.Context(), db, id)
	switch {
	case errors.Is(err, domain.ErrNotFound):
		return "not to be seen here (the transaction that enqueued it may not have committed)"
	case err != nil:
		tb.Fatalf("holdfasttest: %v", err)
	}
	return string(job.Status)
}
