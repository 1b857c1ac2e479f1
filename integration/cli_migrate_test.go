package integration

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast-pg/holdfast/db"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

func TestCLI_MigrateGoesUpAndDown(t *testing.T) {
	t.Parallel()
	database := pgtest.Empty(t)
	steps := int(latestMigration(t))

	if up := runCLI(t, database, 0, "migrate", "up").stdout.String(); strings.Count(up, "ran 0") != steps {
		t.Errorf("the first migrate up prints:\n%s", up)
	}
	if again := runCLI(t, database, 0, "migrate", "up").stdout.String(); again != "nothing to do: the schema is up to date\n" {
		t.Errorf("the second migrate up prints:\n%s", again)
	}
	if version := schemaVersion(t, database); version != int64(steps) {
		t.Errorf("the schema stands at %d, want %d", version, steps)
	}
	if down := runCLI(t, database, 0, "migrate", "down", "--yes").stdout.String(); strings.Count(down, "took back 0") != 1 {
		t.Errorf("migrate down prints:\n%s", down)
	}
	if all := runCLI(t, database, 0, "migrate", "down", "--all", "--yes").stdout.String(); strings.Count(all, "took back 0") != steps-1 {
		t.Errorf("migrate down --all prints:\n%s", all)
	}
	if pgtest.Value[bool](t, database, "SELECT to_regnamespace('holdfast') IS NOT NULL") {
		t.Error("migrate down --all leaves the schema")
	}
	if none := runCLI(t, database, 0, "migrate", "down", "--yes").stdout.String(); none != "nothing to do: no migration was taken\n" {
		t.Errorf("migrate down without a schema prints:\n%s", none)
	}
	runCLI(t, database, 0, "migrate", "up")
}

func TestCLI_MigrateDownWithoutYesChangesNothing(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	wantOutput(t, &runCLI(t, database, 2, "migrate", "down", "--all").stderr, "add --yes")
	if version := schemaVersion(t, database); version != domain.SchemaVersion {
		t.Errorf("the schema stands at %d", version)
	}
}

func TestCLI_MigrateStatusListsEveryMigration(t *testing.T) {
	t.Parallel()
	sources, err := db.Sources()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		database *pgtest.Database
		applied  bool
	}{
		"before": {pgtest.Empty(t), false},
		"after":  {pgtest.New(t), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := runCLI(t, test.database, 0, "migrate", "status").stdout.String()
			var listed struct {
				Items []struct {
					Version   int64   `json:"version"`
					Name      string  `json:"name"`
					Applied   bool    `json:"applied"`
					AppliedAt *string `json:"applied_at"`
				} `json:"items"`
			}
			document := runCLI(t, test.database, 0, "migrate", "status", "-o", "json").stdout.String()
			if err := json.Unmarshal([]byte(document), &listed); err != nil || len(listed.Items) != len(sources) {
				t.Fatalf("%v:\n%s", err, document)
			}
			for i, source := range sources {
				if got := listed.Items[i]; got.Name != source.Name || got.Version != source.Version || got.Applied != test.applied || (got.AppliedAt != nil) != test.applied {
					t.Errorf("got %+v", got)
				}
				if !strings.Contains(table, source.Name) {
					t.Errorf("the table lacks %s", source.Name)
				}
			}
			if strings.Contains(table, "  no\n") == test.applied {
				t.Errorf("printed:\n%s", table)
			}
		})
	}
}

func TestCLI_UnmigratedDatabaseNamesTheCommand(t *testing.T) {
	t.Parallel()
	database := pgtest.Empty(t)
	for _, args := range [][]string{
		{"enqueue", "send_receipt"},
		{"jobs", "show", domain.JobID{}.String()},
		{"work", "--exec", "true"},
	} {
		wantOutput(t, &runCLI(t, database, 1, args...).stderr, "`holdfast migrate up`")
	}
}

func TestCLI_WorkerRefusesASchemaThatDoesNotFit(t *testing.T) {
	t.Parallel()
	for command, versions := range map[string][2]int{
		"`holdfast migrate down`": {domain.SchemaVersion + 1, domain.SchemaVersion + 1},
		"`holdfast migrate up`":   {domain.SchemaVersion - 1, 1},
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			database.Exec(t, "UPDATE holdfast.meta SET schema_version = $1, oldest_binary = $2", versions[0], versions[1])
			wantOutput(t, &runCLI(t, database, 1, "work", "--exec", "true").stderr, command)
			if n := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.workers"); n != 0 {
				t.Errorf("%d workers joined", n)
			}
		})
	}
}
