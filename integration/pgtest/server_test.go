package pgtest

import (
	"strings"
	"testing"
)

func TestStart_RefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		wanted settings
		says   string
	}{
		{"an unknown kind", settings{kind: "podman"}, "want container, embedded, or nothing"},
		{"a version for a container", settings{kind: "container", version: "15"}, "unset HOLDFAST_TEST_POSTGRES_VERSION"},
		{"an address without a scheme", settings{databaseURL: "host=127.0.0.1"}, "postgres://"},
		{"an unknown version", settings{version: "9"}, "from 14 on"},
		{"nobody at the address", settings{databaseURL: "postgres://holdfast@127.0.0.1:1/postgres"}, "HOLDFAST_TEST_DATABASE_URL"},
		{"no such pooler", settings{databaseURL: current.url, pooler: "/no/such/pgbouncer"}, "HOLDFAST_TEST_POOLER=/no/such/pgbouncer"},
		{"a pooler that fails", settings{databaseURL: current.url, pooler: "false"}, "it ended at once"},
		{"no such image", settings{kind: "container", image: "holdfast/no-such-image:0"}, "HOLDFAST_TEST_POSTGRES=container"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			started, err := start(t.Context(), test.wanted)
			if err == nil {
				t.Fatalf("started %s: %v", started.description, started.stop())
			}
			if !strings.Contains(err.Error(), test.says) {
				t.Errorf("says %q, want it to say %q", err, test.says)
			}
		})
	}
}

func TestQueryName_IsReadFromTheFirstLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"-- name: ClaimJobs :many\nWITH x": "ClaimJobs",
		"SELECT 1":                         "",
		"-- nothing":                       "",
		"EXPLAIN -- name: ClaimJobs :many": "",
	} {
		if got, found := queryName(text); got != want || found != (want != "") {
			t.Errorf("queryName(%q) = %q, %t", text, got, found)
		}
	}
}
