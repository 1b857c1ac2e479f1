-- +goose Up
-- Why: a handler can run twice; these two tables let it find out in its own transaction.
-- Locks: none, the tables are new.
CREATE TABLE holdfast.handled (
    scope text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    job_id uuid NOT NULL,
    handled_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT handled_pkey PRIMARY KEY (scope, key),
    CONSTRAINT handled_scope_length CHECK (char_length(scope) BETWEEN 1 AND 200),
    CONSTRAINT handled_key_length CHECK (char_length(key) BETWEEN 1 AND 200)
);
COMMENT ON TABLE holdfast.handled IS 'Effects that were done: a handler inserts its mark in the transaction of the effect, and the second run finds it.';
COMMENT ON COLUMN holdfast.handled.scope IS 'The name of the effect, such as send_receipt.';
COMMENT ON COLUMN holdfast.handled.key IS 'What the effect was done for; the job''s id unless the handler knows better.';
COMMENT ON COLUMN holdfast.handled.job_id IS 'The job whose handler made the mark. The mark lives at least as long as the job is in the inbox.';
COMMENT ON COLUMN holdfast.handled.handled_at IS 'When the mark was made.';

CREATE INDEX handled_expiry_idx ON holdfast.handled USING brin (handled_at);
COMMENT ON INDEX holdfast.handled_expiry_idx IS 'Finds old marks, for DeleteOldMarks.';

CREATE TABLE holdfast.fences (
    resource text COLLATE "C" NOT NULL,
    token bigint NOT NULL,
    touched_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT fences_pkey PRIMARY KEY (resource),
    CONSTRAINT fences_resource_length CHECK (char_length(resource) BETWEEN 1 AND 200)
)
WITH (fillfactor = 70);
COMMENT ON TABLE holdfast.fences IS 'The highest fence token that each guarded resource has seen. A lower one is refused.';
COMMENT ON COLUMN holdfast.fences.resource IS 'What is guarded, 1 to 200 characters.';
COMMENT ON COLUMN holdfast.fences.token IS 'The highest lease generation seen.';
COMMENT ON COLUMN holdfast.fences.touched_at IS 'When the resource was last guarded; housekeeping forgets those unused for long.';

UPDATE holdfast.meta SET schema_version = 6, oldest_binary = 6;

-- +goose Down
UPDATE holdfast.meta SET schema_version = 5, oldest_binary = 5;
DROP TABLE holdfast.fences;
DROP TABLE holdfast.handled;
