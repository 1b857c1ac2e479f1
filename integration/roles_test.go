package integration

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/gen"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// rolesOf makes a role for each duty, named after the database: roles belong to the server, on
// which tests run side by side. It returns their prefix.
func rolesOf(t *testing.T, database *pgtest.Database) string {
	t.Helper()
	prefix := database.Config().Database
	if created, err := domain.CreateRoles(t.Context(), database.Pool, prefix); err != nil || created != 4 {
		t.Fatalf("made %d roles, %v", created, err)
	}
	t.Cleanup(func() {
		conn, err := pgx.ConnectConfig(context.Background(), database.Config())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		for _, duty := range domain.Duties() {
			dropRole(t, conn, prefix+"_"+string(duty))
		}
	})
	return prefix
}

// makeRole makes a role that may do nothing, until the test ends.
func makeRole(t *testing.T, database *pgtest.Database, suffix string) string {
	t.Helper()
	name := database.Config().Database + "_" + suffix
	database.Exec(t, "CREATE ROLE "+name+" NOLOGIN")
	t.Cleanup(func() {
		conn, err := pgx.ConnectConfig(context.Background(), database.Config())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		dropRole(t, conn, name)
	})
	return name
}

func dropRole(t *testing.T, conn *pgx.Conn, name string) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), "DROP OWNED BY "+name+" CASCADE"); err != nil {
		t.Error(err)
	}
	if _, err := conn.Exec(context.Background(), "DROP ROLE "+name); err != nil {
		t.Error(err)
	}
}

// poolAs opens a pool whose sessions have the rights of the role.
func poolAs(t *testing.T, database *pgtest.Database, role string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(database.DirectURL)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.Tracer = database.Config().Tracer
	config.ConnConfig.RuntimeParams["role"] = role
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func denied(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == "42501"
}

// Every statement is run as every role, with the arguments that the test of all modes makes up.
func TestRoles_EachMayRunItsStatementsAndNoOther(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	prefix := rolesOf(t, database)
	queries := reflect.ValueOf(gen.New())
	may := map[string][]domain.Duty{}
	for _, duty := range domain.Duties() {
		conn, err := poolAs(t, database, prefix+"_"+string(duty)).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range queries.NumMethod() {
			name := queries.Type().Method(i).Name
			err := runOnce(t.Context(), conn.Conn(), queries.Method(i))
			if err != nil && !denied(err) {
				t.Errorf("%s as %s: %v", name, duty, err)
			}
			if err == nil {
				may[name] = append(may[name], duty)
			}
		}
		conn.Release()
	}
	for i := range queries.NumMethod() {
		name := queries.Type().Method(i).Name
		want, known := domain.MayRun(name)
		if !known || !slices.Equal(may[name], want) {
			t.Errorf("domain/duties.go lets %v run %s, the database lets %v", want, name, may[name])
		}
	}
}

// What a statement may not do a role may not do by hand either.
func TestRoles_NoneCanChangeHistoryOrTheSchema(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	prefix := rolesOf(t, database)
	for _, duty := range domain.Duties() {
		pool := poolAs(t, database, prefix+"_"+string(duty))
		for _, forbidden := range []string{
			"UPDATE holdfast.inbox SET payload = '{}'", "UPDATE holdfast.inbox SET seq = 1", "UPDATE holdfast.inbox SET created_at = now()",
			"TRUNCATE holdfast.inbox", "DROP TABLE holdfast.inbox", "ALTER TABLE holdfast.inbox ADD COLUMN mine integer",
			"CREATE TABLE holdfast.mine ()", "CREATE FUNCTION holdfast.mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
			"UPDATE holdfast.inbox_archive SET completed_at = now()", "DELETE FROM holdfast.inbox_archive",
			"UPDATE holdfast.events SET detail = ''", "UPDATE holdfast.events SET actor = ''",
			"UPDATE holdfast.meta SET bucket_count = 1", "UPDATE holdfast.roles SET duty = 'operator'",
			"SELECT holdfast.grant_role('operator', current_user)", "SELECT holdfast.create_roles('mine')", "SELECT holdfast.revoke_role('mine')",
		} {
			if _, err := pool.Exec(t.Context(), forbidden); !denied(err) && (err == nil || !strings.Contains(err.Error(), "must be owner")) {
				t.Errorf("a %s may run %s: %v", duty, forbidden, err)
			}
		}
	}
	for _, secret := range []string{"SELECT payload FROM holdfast.inbox", "SELECT headers FROM holdfast.jobs", "SELECT * FROM holdfast.inbox_archive"} {
		for _, duty := range []domain.Duty{domain.DutyProducer, domain.DutyViewer} {
			if _, err := poolAs(t, database, prefix+"_"+string(duty)).Exec(t.Context(), secret); !denied(err) {
				t.Errorf("a %s may run %s: %v", duty, secret, err)
			}
		}
	}
}

// What a function with its owner's rights finds must not depend on its caller: a table, a type
// or a function of the caller's own must never stand in for one that it means.
func TestRoles_FunctionsWithTheirOwnersRightsHaveAFixedPath(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	loose := pgtest.Values[string](t, database, `
		SELECT function.oid::regprocedure::text
		FROM pg_proc AS function
		WHERE function.pronamespace = 'holdfast'::regnamespace
			AND function.prosecdef
			AND NOT COALESCE('search_path=pg_catalog, holdfast, pg_temp' = ANY(function.proconfig), false)`)
	open := pgtest.Values[string](t, database, `
		SELECT function.oid::regprocedure::text
		FROM pg_proc AS function
		WHERE function.pronamespace = 'holdfast'::regnamespace
			AND function.prosecdef
			AND function.proname <> 'incarnation'
			AND has_function_privilege('public', function.oid, 'EXECUTE')`)
	if len(loose) > 0 || len(open) > 0 {
		t.Errorf("without the fixed path: %v; open to everybody: %v", loose, open)
	}
	role := makeRole(t, database, "evil")
	database.Exec(t, "GRANT USAGE ON SCHEMA holdfast TO "+role)
	conn, err := poolAs(t, database, role).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, statement := range []string{
		"CREATE FUNCTION pg_temp.who() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'runs as %', current_user; END $$",
		"CREATE DOMAIN pg_temp.regclass AS text CHECK (pg_temp.who())",
		"CREATE DOMAIN pg_temp.oid AS text CHECK (pg_temp.who())",
		"SELECT holdfast.incarnation()",
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// To enqueue in SQL, a role needs no right to a table.
func TestRoles_EnqueueInSQLNeedsTheFunctionOnly(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	role := makeRole(t, database, "php")
	pool := poolAs(t, database, role)
	if _, err := enqueueSQL(t.Context(), pool, "'note'"); !denied(err) {
		t.Fatalf("without any right: %v", err)
	}
	database.Exec(t, "GRANT USAGE ON SCHEMA holdfast TO "+role)
	if _, err := enqueueSQL(t.Context(), pool, "'note'"); !denied(err) {
		t.Fatalf("without the right to the function: %v", err)
	}
	database.Exec(t, "GRANT EXECUTE ON FUNCTION holdfast.enqueue TO "+role)
	result, err := enqueueSQL(t.Context(), pool, "'note', queue => 'new', idempotency_key => 'one'")
	if err != nil || result.Duplicate {
		t.Fatalf("%+v, %v", result, err)
	}
	if _, err := pool.Exec(t.Context(), "SELECT id FROM holdfast.inbox"); !denied(err) {
		t.Errorf("it reads jobs: %v", err)
	}
}

func TestRoles_WorkerCannotMakeArchiveDaysWithoutEnd(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	for _, days := range []string{"NULL", "-1", "367"} {
		_, err := database.Pool.Exec(t.Context(), "SELECT holdfast.create_archive_days("+days+")")
		if err == nil || !strings.Contains(err.Error(), "days_ahead: "+days+" is not between 0 and 366") {
			t.Errorf("%s days: %v", days, err)
		}
	}
}

// Granting is exact: what a role had before goes, what somebody took comes back, and what was
// granted is known.
func TestRoles_GrantIsExactAndCanBeRepeated(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	role := makeRole(t, database, "app")
	if _, err := domain.GrantRole(t.Context(), database.Pool, domain.DutyWorker, role+"x"); !errors.Is(err, domain.ErrNoRole) {
		t.Errorf("a role that is not there: %v", err)
	}
	for _, duty := range []domain.Duty{domain.DutyWorker, domain.DutyViewer, domain.DutyViewer} {
		if _, err := domain.GrantRole(t.Context(), database.Pool, duty, role); err != nil {
			t.Fatal(err)
		}
		wantRoles(t, database, domain.Role{Name: role, Duty: duty, Exists: true, Missing: []domain.Privilege{}})
	}
	if _, err := poolAs(t, database, role).Exec(t.Context(), "DELETE FROM holdfast.inbox"); !denied(err) {
		t.Errorf("a viewer that was a worker may delete: %v", err)
	}
	database.Exec(t, "REVOKE SELECT (kind), SELECT ON holdfast.events FROM "+role)
	database.Exec(t, "REVOKE SELECT (kind) ON holdfast.jobs FROM "+role)
	lacking, err := domain.ListRoles(t.Context(), database.Pool)
	if err != nil || len(lacking) != 1 || len(lacking[0].Missing) != 2 || lacking[0].Missing[0].String() != "SELECT on table holdfast.events" ||
		!strings.HasPrefix(lacking[0].Missing[1].String(), "SELECT (id, seq, queue, kind, ") {
		t.Errorf("%+v, %v", lacking, err)
	}
	if n, err := domain.GrantRoles(t.Context(), database.Pool); err != nil || n != 1 {
		t.Errorf("granted to %d roles, %v", n, err)
	}
	wantRoles(t, database, domain.Role{Name: role, Duty: domain.DutyViewer, Exists: true, Missing: []domain.Privilege{}})
	if err := domain.RevokeRole(t.Context(), database.Pool, role); err != nil {
		t.Fatal(err)
	}
	if err := domain.RevokeRole(t.Context(), database.Pool, role); !errors.Is(err, domain.ErrNoRole) {
		t.Errorf("revoked twice: %v", err)
	}
	wantRoles(t, database)
	if _, err := poolAs(t, database, role).Exec(t.Context(), "SELECT 1 FROM holdfast.meta"); !denied(err) {
		t.Errorf("it may still read: %v", err)
	}
	// Nothing holds the role any more.
	other := database.Config().Database + "_gone"
	database.Exec(t, "CREATE ROLE "+other)
	if _, err := domain.GrantRole(t.Context(), database.Pool, domain.DutyOperator, other); err != nil {
		t.Fatal(err)
	}
	database.Exec(t, "DROP OWNED BY "+other)
	database.Exec(t, "DROP ROLE "+other)
	wantRoles(t, database, domain.Role{Name: other, Duty: domain.DutyOperator, Missing: []domain.Privilege{}})
	if n, err := domain.GrantRoles(t.Context(), database.Pool); err != nil || n != 0 {
		t.Errorf("granted to %d roles, %v", n, err)
	}
}

func wantRoles(t *testing.T, database *pgtest.Database, want ...domain.Role) {
	t.Helper()
	got, err := domain.ListRoles(t.Context(), database.Pool)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("roles %+v (%v), want %+v", got, err, want)
	}
}

// The owner's rights would go with what is revoked first, and "public" is everybody.
func TestRoles_NeitherTheOwnerNorEverybodyGetsADuty(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	owner := pgtest.Value[string](t, database, "SELECT tableowner FROM pg_tables WHERE schemaname = 'holdfast' AND tablename = 'inbox'")
	for role, words := range map[string]string{owner: "owns the schema and needs no duty", "public": "there is no role", "current_user": "there is no role"} {
		_, err := database.Pool.Exec(t.Context(), "SELECT holdfast.grant_role('viewer', $1)", role)
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", role, err)
		}
	}
}

// An error says who lacks what, for what, and the command that grants it.
func TestRoles_MissingGrantIsNamedWithWhoCanGiveIt(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	role := makeRole(t, database, "app")
	pool := poolAs(t, database, role)
	enqueueAs := func() error {
		_, err := domain.Enqueue(t.Context(), pool, note{}, domain.Once("one"))
		return err
	}
	work := func() error {
		queue, err := domain.NewQueue(pool)
		if err != nil {
			return err
		}
		defer queue.Close()
		_, err = queue.Open(t.Context())
		return err
	}
	for _, step := range []struct {
		grant string
		run   func() error
		want  string
	}{
		{"", enqueueAs, `enqueue note: role "` + role + `" lacks USAGE on schema holdfast, which EnqueueJob needs: the owner of the schema runs ` + "`holdfast roles grant producer|worker " + role + "`"},
		{"USAGE ON SCHEMA holdfast", enqueueAs, `lacks SELECT on table queues, which EnqueueJob needs`},
		{"SELECT ON holdfast.queues, holdfast.meta, holdfast.wake", enqueueAs, `lacks one of SELECT, INSERT, UPDATE on table idempotency_keys, which EnqueueJob needs`},
		{"SELECT, INSERT, UPDATE ON holdfast.idempotency_keys", enqueueAs, `lacks one of SELECT, INSERT on table inbox, which EnqueueJob needs`},
		{"SELECT, INSERT ON holdfast.inbox", enqueueAs, `lacks USAGE on sequence inbox_seq, which EnqueueJob needs`},
		{"USAGE ON SEQUENCE holdfast.inbox_seq", enqueueAs, ""},
		{"", work, ""},
	} {
		if step.grant != "" {
			database.Exec(t, "GRANT "+step.grant+" TO "+role)
		}
		err := step.run()
		var lacks *domain.PermissionError
		switch {
		case step.want == "" && err != nil, step.want != "" && (err == nil || !strings.Contains(err.Error(), step.want)):
			t.Errorf("with %q: %v", step.grant, err)
		case step.want != "" && (!errors.As(err, &lacks) || !denied(err) || lacks.Role != role):
			t.Errorf("the error is a %T", err)
		}
	}
	if _, err := domain.GrantRole(t.Context(), pool, domain.DutyViewer, role); err == nil || !strings.Contains(err.Error(), "which GrantRole needs: only the owner of the schema may do this") {
		t.Errorf("granting to oneself: %v", err)
	}
	if _, err := domain.CreateRoles(t.Context(), pool, "mine"); err == nil || !strings.Contains(err.Error(), "only the owner of the schema may do this") {
		t.Errorf("making roles: %v", err)
	}
}
