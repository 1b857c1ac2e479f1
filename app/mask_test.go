package app

import "testing"

func TestMaskURL_ShowsWhereItLeadsAndNoSecret(t *testing.T) {
	for _, name := range []string{"PGPASSWORD", "PGPASSFILE", "PGHOST", "PGPORT", "PGDATABASE", "PGUSER", "PGSERVICE"} {
		t.Setenv(name, "")
	}
	for address, want := range map[string]string{
		"postgres://app:secret@db.example.org/jobs":                    "postgres://app:***@db.example.org:5432/jobs",
		"postgres://app@db.example.org:6432/jobs?pool_max_conns=4":     "postgres://app@db.example.org:6432/jobs",
		"postgres://app@db1,db2:5433/jobs?password=secret":             "postgres://app:***@db1:5432,db2:5433/jobs",
		"postgres://app@host/jobs?sslpassword=secret&sslmode=disable":  "postgres://app@host:5432/jobs",
		"host=/run/postgresql user=app password='se cret' dbname=jobs": "postgres://app:***@/run/postgresql/jobs",
		"postgres://[::1]:5433/jobs?user=app":                          "postgres://app@[::1]:5433/jobs",
		"postgres://app:se@cret@host/jobs":                             NotValid,
		"postgres://app:12/secret@host/jobs":                           NotValid,
		"postgres://app:secret@host:port/jobs":                         NotValid,
		"secret":                                                       NotValid,
	} {
		if got := MaskURL(address); got != want {
			t.Errorf("%s is shown as %s, want %s", address, got, want)
		}
	}
}
