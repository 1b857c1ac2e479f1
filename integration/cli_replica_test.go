package integration

import (
	"strings"
	"testing"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// What reads goes to the replica that is named, by a flag or by the environment, and says how
// old its answer is; what writes goes to the database.
func TestCLI_ReadURLSendsWhatReadsToTheReplica(t *testing.T) {
	t.Parallel()
	database, server := pgtest.Alone(t)
	enqueue(t, database, domain.Key("before"))
	replica, _ := database.Standby(t, server)
	onReplica := func(args ...string) *process {
		t.Helper()
		p := newProcess(t, database.DirectURL, args...)
		p.command.Env = append(p.command.Env, "HOLDFAST_READ_URL="+replica.URL)
		return p.start(t).ends(t, 0)
	}
	onReplica("enqueue", "note", "--key", "after")
	for _, args := range [][]string{
		{"jobs", "list"},
		{"jobs", "list", "--state", "ready"},
		{"queues", "list"},
		{"queues", "show", "default"},
		{"dead", "groups"},
		{"dead", "list"},
		{"dead", "keys"},
		{"leases", "list"},
		{"keys", "hot"},
		{"keys", "show", "before"},
		{"status"},
		{"top", "--print"},
	} {
		read := onReplica(args...)
		wantOutput(t, &read.stderr, "read from a replica that ")
		if strings.Contains(read.stdout.String(), "after") {
			t.Errorf("%v reads what is not on the replica:\n%s", args, read.stdout.String())
		}
	}
	flagged := newProcess(t, database.DirectURL, "jobs", "list", "--read-url", replica.URL).start(t).ends(t, 0)
	wantOutput(t, &flagged.stderr, "read from a replica that ")
	here := newProcess(t, database.DirectURL, "jobs", "list").start(t).ends(t, 0)
	wantOutput(t, &here.stdout, "after", "before")
	if here.stderr.String() != "" {
		t.Errorf("stderr: %s", here.stderr.String())
	}
	itself := newProcess(t, database.DirectURL, "jobs", "list", "--read-url", database.DirectURL).start(t).ends(t, 0)
	wantOutput(t, &itself.stderr, "read from a server that is no replica: it accepts writes")
	lag, err := domain.ReadLag(t.Context(), replica.Pool)
	if err != nil || !lag.Standby {
		t.Errorf("%+v, %v", lag, err)
	}
}
