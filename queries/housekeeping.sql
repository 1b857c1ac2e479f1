-- name: TryHousekeeping :one
-- TryHousekeeping elects the caller to keep house until its transaction ends, unless another
-- was elected. Called by domain/housekeeping.go. The election only spares work: everything
-- that housekeeping does is harmless when two do it. Locks: an advisory lock of the
-- transaction, whose number is drawn from the schema's name.
SELECT pg_try_advisory_xact_lock(hashtextextended('holdfast.housekeeping', 0)) AS elected;
