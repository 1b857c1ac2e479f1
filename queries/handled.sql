-- name: MarkHandled :execrows
-- MarkHandled records, in the handler's own transaction, that an effect is done. Called by
-- domain/handled.go. One row: this is the first time. Zero rows: the effect was done before.
-- While another transaction is making the same mark the statement waits for it to end.
-- Index: handled_pkey. Locks: the mark.
INSERT INTO holdfast.handled (scope, key, job_id)
VALUES (@scope::text, @key::text, @job_id::uuid)
ON CONFLICT (scope, key) DO NOTHING;

-- name: LatestMark :one
-- LatestMark returns the mark of an effect that sorts last: of a projection, whose marks are
-- numbers of 19 digits, the position. Called by domain/projection.go. Zero rows: there is none.
-- Index: handled_pkey.
SELECT mark.key
FROM holdfast.handled AS mark
WHERE mark.scope = @scope::text
ORDER BY mark.key DESC
LIMIT 1;
