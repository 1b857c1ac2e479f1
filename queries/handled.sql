-- name: MarkHandled :execrows
-- MarkHandled records, in the handler's own transaction, that an effect is done. Called by
-- domain/handled.go. One row: this is the first time. Zero rows: the effect was done before.
-- While another transaction is making the same mark the statement waits for it to end.
-- Index: handled_pkey. Locks: the mark.
INSERT INTO holdfast.handled (scope, key, job_id)
VALUES (@scope::text, @key::text, @job_id::uuid)
ON CONFLICT (scope, key) DO NOTHING;
