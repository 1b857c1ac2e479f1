-- name: ListKeyJobs :many
-- ListKeyJobs lists the jobs of one partition key that are not completed, in the order of their
-- enqueues. Ordered jobs that wait or run are found by their lane. The others have no index by
-- key: it looks at so many pending jobs of the key's bucket, oldest first, at so many claims,
-- and at so many of the newest failed and dead-lettered jobs each. Called by
-- domain/supportkeys.go. Index: inbox_lane_idx, inbox_lane_processing_idx, inbox_claim_idx,
-- inbox_processing_idx, inbox_dead_newest_idx.
SELECT
    found.id,
    found.seq,
    found.queue,
    found.kind,
    found.partition_key,
    found.partition_bucket,
    found.ordered,
    found.status,
    found.attempts,
    found.max_attempts,
    found.lease_generation,
    found.claimed_by,
    found.claimed_at,
    found.lease_expires_at,
    found.available_at,
    found.created_at,
    found.finished_at,
    found.idempotency_key,
    COALESCE(left(found.last_error, 300), '')::text AS last_error,
    now()::timestamptz AS read_at
FROM (
    (
        SELECT
            job.id,
            job.seq,
            job.queue,
            job.kind,
            job.partition_key,
            job.partition_bucket,
            job.ordered,
            job.status,
            job.attempts,
            job.max_attempts,
            job.lease_generation,
            job.claimed_by,
            job.claimed_at,
            job.lease_expires_at,
            job.available_at,
            job.created_at,
            job.finished_at,
            job.idempotency_key,
            job.last_error
        FROM holdfast.inbox AS job
        WHERE job.status = 'pending'
            AND job.ordered
            AND job.queue = @queue::text
            AND job.partition_bucket = @partition_bucket::integer
            AND job.partition_key = @partition_key::text
        ORDER BY job.seq
        LIMIT @max_rows::integer
    )
    UNION ALL
    (
        SELECT
            job.id,
            job.seq,
            job.queue,
            job.kind,
            job.partition_key,
            job.partition_bucket,
            job.ordered,
            job.status,
            job.attempts,
            job.max_attempts,
            job.lease_generation,
            job.claimed_by,
            job.claimed_at,
            job.lease_expires_at,
            job.available_at,
            job.created_at,
            job.finished_at,
            job.idempotency_key,
            job.last_error
        FROM holdfast.inbox AS job
        WHERE job.status = 'processing'
            AND job.ordered
            AND job.queue = @queue::text
            AND job.partition_bucket = @partition_bucket::integer
            AND job.partition_key = @partition_key::text
        LIMIT 1
    )
    UNION ALL
    (
        SELECT
            pending.id,
            pending.seq,
            pending.queue,
            pending.kind,
            pending.partition_key,
            pending.partition_bucket,
            pending.ordered,
            pending.status,
            pending.attempts,
            pending.max_attempts,
            pending.lease_generation,
            pending.claimed_by,
            pending.claimed_at,
            pending.lease_expires_at,
            pending.available_at,
            pending.created_at,
            pending.finished_at,
            pending.idempotency_key,
            pending.last_error
        FROM (
            SELECT
                job.id,
                job.seq,
                job.queue,
                job.kind,
                job.partition_key,
                job.partition_bucket,
                job.ordered,
                job.status,
                job.attempts,
                job.max_attempts,
                job.lease_generation,
                job.claimed_by,
                job.claimed_at,
                job.lease_expires_at,
                job.available_at,
                job.created_at,
                job.finished_at,
                job.idempotency_key,
                job.last_error
            FROM holdfast.inbox AS job
            WHERE job.status = 'pending'
                AND NOT job.ordered
                AND job.queue = @queue::text
                AND job.partition_bucket = @partition_bucket::integer
            ORDER BY
                job.available_at,
                job.seq
            LIMIT @look::integer
        ) AS pending
        WHERE pending.partition_key = @partition_key::text
    )
    UNION ALL
    (
        SELECT
            claim.id,
            claim.seq,
            claim.queue,
            claim.kind,
            claim.partition_key,
            claim.partition_bucket,
            claim.ordered,
            claim.status,
            claim.attempts,
            claim.max_attempts,
            claim.lease_generation,
            claim.claimed_by,
            claim.claimed_at,
            claim.lease_expires_at,
            claim.available_at,
            claim.created_at,
            claim.finished_at,
            claim.idempotency_key,
            claim.last_error
        FROM (
            SELECT
                job.id,
                job.seq,
                job.queue,
                job.kind,
                job.partition_key,
                job.partition_bucket,
                job.ordered,
                job.status,
                job.attempts,
                job.max_attempts,
                job.lease_generation,
                job.claimed_by,
                job.claimed_at,
                job.lease_expires_at,
                job.available_at,
                job.created_at,
                job.finished_at,
                job.idempotency_key,
                job.last_error
            FROM holdfast.inbox AS job
            WHERE job.claimed_at IS NOT NULL
            ORDER BY job.lease_generation
            LIMIT @look::integer
        ) AS claim
        WHERE claim.queue = @queue::text
            AND claim.partition_key = @partition_key::text
            AND NOT claim.ordered
    )
    UNION ALL
    (
        SELECT
            dead.id,
            dead.seq,
            dead.queue,
            dead.kind,
            dead.partition_key,
            dead.partition_bucket,
            dead.ordered,
            dead.status,
            dead.attempts,
            dead.max_attempts,
            dead.lease_generation,
            dead.claimed_by,
            dead.claimed_at,
            dead.lease_expires_at,
            dead.available_at,
            dead.created_at,
            dead.finished_at,
            dead.idempotency_key,
            dead.last_error
        FROM (VALUES ('failed'), ('dead_letter')) AS state (name)
        CROSS JOIN LATERAL (
            SELECT
                job.id,
                job.seq,
                job.queue,
                job.kind,
                job.partition_key,
                job.partition_bucket,
                job.ordered,
                job.status,
                job.attempts,
                job.max_attempts,
                job.lease_generation,
                job.claimed_by,
                job.claimed_at,
                job.lease_expires_at,
                job.available_at,
                job.created_at,
                job.finished_at,
                job.idempotency_key,
                job.last_error
            FROM holdfast.inbox AS job
            WHERE job.status IN ('failed', 'dead_letter')
                AND job.queue = @queue::text
                AND job.status = state.name::holdfast.inbox_status
            ORDER BY
                job.finished_at DESC,
                job.id DESC
            LIMIT @look::integer
        ) AS dead
        WHERE dead.partition_key = @partition_key::text
    )
) AS found
ORDER BY found.seq
LIMIT @max_rows::integer;
