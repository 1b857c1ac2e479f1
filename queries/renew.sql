-- name: RenewLeases :many
-- RenewLeases moves the deadline of every claim of the set that is still held and answers
-- with those. Called by domain/renew.go. A job that does not come back is lost: its lease
-- had ended, or another claim holds it, and its handler must stop. An ended lease is not
-- revived, because a reclaim may be reading it. The whole fence is a join condition: as a
-- condition on the table it makes the planner walk every job in flight.
-- Index: inbox_pkey. Locks: the rows it returns.
UPDATE holdfast.inbox AS job
SET lease_expires_at = now() + @lease::interval
FROM (
    SELECT
        unnest(@partition_buckets::integer[]) AS partition_bucket,
        unnest(@ids::uuid[]) AS id,
        unnest(@lease_generations::bigint[]) AS lease_generation,
        @worker_id::text AS worker_id
) AS held
WHERE job.id = ANY(ARRAY[held.id])
    AND job.partition_bucket = held.partition_bucket
    AND job.lease_generation = held.lease_generation
    AND job.claimed_by = held.worker_id
    AND job.lease_expires_at > now()
RETURNING
    job.id,
    job.partition_bucket,
    job.lease_generation;
