-- +goose Up
-- Why: a standby that is promoted may lack the last commits of the old primary, and then its
-- sequence hands out generations again that claims have had. The epoch in front of them must
-- be another on each such history of the database, so meta says for which one it holds, and a
-- claim on any other is refused until the epoch was raised.
-- Locks: holdfast.meta, strongly, for an instant; enqueues read it.

-- Not every service lets everybody, or anybody, call these functions: Aurora answers with an
-- error unless wal_level is logical. A part that is withheld is 0. SECURITY DEFINER, so that the
-- answer does not depend on who asks: two workers with different answers would raise the epoch
-- in turn for ever. VOLATILE, or the planner would call it too, for an estimate, with each claim.
-- +goose StatementBegin
CREATE FUNCTION holdfast.incarnation() RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog
AS $$
DECLARE
    cluster bigint := 0;
    timeline bigint := 0;
BEGIN
    BEGIN
        SELECT control.system_identifier INTO cluster FROM pg_control_system() AS control;
    EXCEPTION WHEN OTHERS THEN
        NULL;
    END;
    -- That of the next record. The control file still names the old one right after a promotion.
    BEGIN
        timeline := ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint;
    EXCEPTION WHEN OTHERS THEN
        NULL;
    END;
    RETURN cluster || '/' || 'holdfast.meta'::regclass::oid || '/' || timeline;
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION holdfast.incarnation() IS 'Which history of the database this is: the identifier of its cluster, the OID of meta, which a restore from a dump changes, and the timeline, which a promotion changes; a restart changes none. 0 for what the server does not tell.';

ALTER TABLE holdfast.meta ADD COLUMN incarnation text COLLATE "C";
COMMENT ON COLUMN holdfast.meta.incarnation IS 'The incarnation of the database that the epoch holds for. No claim is made under another: the first one raises the epoch.';
UPDATE holdfast.meta SET incarnation = holdfast.incarnation();
ALTER TABLE holdfast.meta ALTER COLUMN incarnation SET NOT NULL;

COMMENT ON COLUMN holdfast.meta.epoch IS 'The high part of every lease generation. It is raised by itself when the incarnation is another, so that no token is given out twice.';

UPDATE holdfast.meta SET schema_version = 8, oldest_binary = 7;

-- +goose Down
UPDATE holdfast.meta SET schema_version = 7, oldest_binary = 7;
COMMENT ON COLUMN holdfast.meta.epoch IS 'The high part of every lease generation. A failover that may have lost commits raises it, so that no token is given out twice.';
ALTER TABLE holdfast.meta DROP COLUMN incarnation;
DROP FUNCTION holdfast.incarnation();
