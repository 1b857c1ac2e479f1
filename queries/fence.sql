-- name: GuardResource :execrows
-- GuardResource admits a fence token to a resource if no higher one was seen there, in the
-- transaction of the write that it guards. Called by domain/fence.go. Zero rows: a higher
-- token was seen, and the caller must not write. An equal token is admitted: a claim may
-- write twice. A rollback gives the resource back.
-- Index: fences_pkey. Locks: the resource's row, until the transaction ends.
INSERT INTO holdfast.fences AS fence (resource, token)
VALUES (@resource::text, @token::bigint)
ON CONFLICT (resource) DO UPDATE
SET
    token = EXCLUDED.token,
    touched_at = EXCLUDED.touched_at
WHERE fence.token <= EXCLUDED.token;
