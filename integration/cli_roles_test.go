package integration

import (
	"strings"
	"testing"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

func TestCLI_RolesAreCreatedGrantedListedAndRevoked(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	prefix := rolesOf(t, database)
	again := runCLI(t, database, 0, "roles", "create", "--prefix", prefix)
	if got := strings.ReplaceAll(again.stdout.String(), prefix, "P"); got != "P_producer has its duty\nP_worker has its duty\nP_operator has its duty\nP_viewer has its duty\n" {
		t.Errorf("printed:\n%s", got)
	}
	wantOutput(t, &again.stderr, "0 of them were made")
	app := makeRole(t, database, "app")
	if got := strings.ReplaceAll(runCLI(t, database, 0, "roles", "grant", "viewer", app).stdout.String(), app, "app"); got != "app is a viewer: 14 privileges\n" {
		t.Errorf("printed:\n%s", got)
	}
	database.Exec(t, "REVOKE SELECT ON holdfast.meta FROM "+app)
	want := `ROLE DUTY LACKS
P_app viewer SELECT on table holdfast.meta
P_operator operator nothing
P_producer producer nothing
P_viewer viewer nothing
P_worker worker nothing
`
	if got := narrow(runCLI(t, database, 0, "roles", "list").stdout.String(), prefix); got != want {
		t.Errorf("printed:\n%s", got)
	}
	listed := decoded[struct{ Items []domain.Role }](t, database, "roles", "list")
	if len(listed.Items) != 5 || listed.Items[0].Missing[0].Privilege != "SELECT" || listed.Items[1].Missing == nil || !listed.Items[1].Exists {
		t.Errorf("%+v", listed)
	}
	if got := runCLI(t, database, 0, "roles", "grant").stdout.String(); got != "5 roles have what their duty needs\n" {
		t.Errorf("printed:\n%s", got)
	}
	wantOutput(t, &runCLI(t, database, 0, "roles", "revoke", app).stdout, app+" has no duty any more; the role itself stays")
	wantOutput(t, &runCLI(t, database, 1, "roles", "revoke", app).stderr, "no such role that has a duty: `holdfast roles list` names them")
	wantOutput(t, &runCLI(t, database, 1, "roles", "grant", "worker", app+"x").stderr, "no such role on this server: make it first, with CREATE ROLE")
}

// narrow is a table with one space between its columns.
func narrow(table, prefix string) string {
	var text strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(table, prefix, "P")) {
		text.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
	}
	return text.String()
}
