package doctor

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/domain"
)

// This file is the SQL that findings print for a person to run. Nothing here is sent.

// forRole sets a setting for the role in its database. It holds for new sessions.
func (p *patient) forRole(name, value string) string {
	if p.settings[name].Source == "client" {
		return "take " + name + " out of the options of the database URL, or of PGOPTIONS"
	}
	return fmt.Sprintf("ALTER ROLE %s IN DATABASE %s SET %s = %s;",
		identifier(p.server.RoleName), identifier(p.server.DatabaseName), name, literal(value))
}

func switchOn(setting string) string {
	return fmt.Sprintf("ALTER SYSTEM SET %s = on; SELECT pg_reload_conf();", setting)
}

func raiseConnections(now int32) string {
	return fmt.Sprintf("ALTER SYSTEM SET max_connections = %d; -- and restart the server; or run fewer workers, or put a pooler before it", 2*now)
}

func endSession(pid string) string { return fmt.Sprintf("SELECT pg_terminate_backend(%s);", pid) }

func endPrepared(gid string) string {
	return fmt.Sprintf("ROLLBACK PREPARED %s; -- or COMMIT PREPARED: its transaction manager knows", literal(gid))
}

func dropSlot(name string) string {
	return fmt.Sprintf("SELECT pg_drop_replication_slot(%s); -- or start who reads it", literal(name))
}

const endOnStandby = "SELECT pid, xact_start, query FROM pg_stat_activity ORDER BY xact_start; -- on the standby, and end the oldest"

const (
	allowAutovacuum = "ALTER TABLE holdfast.inbox RESET (autovacuum_enabled);"
	vacuumInbox     = "VACUUM (ANALYZE) holdfast.inbox; -- if the rows stay, mend what vacuum_horizon finds"
	shrinkInbox     = "VACUUM (FULL, ANALYZE) holdfast.inbox; -- in a quiet hour: nothing is enqueued or claimed meanwhile; pg_repack needs none"
	takeStatistics  = "ANALYZE holdfast.inbox, holdfast.inbox_archive, holdfast.idempotency_keys, holdfast.handled, holdfast.fences;"
)

func grantRole(role domain.Role) string {
	return fmt.Sprintf("SELECT holdfast.grant_role(%s, %s); -- as the schema's owner", literal(string(role.Duty)), literal(role.Name))
}

func forgetRole(name string) string {
	return fmt.Sprintf("SELECT holdfast.revoke_role(%s); -- or make the role, and run `holdfast roles grant`", literal(name))
}

func setBucketCount(count int) string {
	return fmt.Sprintf("UPDATE holdfast.meta SET bucket_count = %d; -- what it was before; then restart the workers", count)
}

// freeKeys makes the keys of a queue's dead jobs free. The jobs stay.
func freeKeys(queue string) string {
	return fmt.Sprintf(`DELETE FROM holdfast.idempotency_keys AS taken
USING holdfast.inbox AS job
WHERE job.status IN ('failed', 'dead_letter')
    AND job.queue = %s
    AND job.id = taken.job_id
    AND taken.queue = job.queue
    AND taken.key = job.idempotency_key; -- or redrive the jobs, and leave the keys with them: holdfast dead keys lists them`, literal(queue))
}

func identifier(name string) string { return pgx.Identifier{name}.Sanitize() }

func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
