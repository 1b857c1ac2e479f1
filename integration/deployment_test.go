package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// What scales the workers is the number that the commands print, and comes from the same statement.
func TestDeploy_AutoscalerAsksForReadyJobs(t *testing.T) {
	t.Parallel()
	var scaled struct {
		Spec struct {
			Triggers []struct {
				Metadata struct{ Query string }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "../deploy/kubernetes/keda.yaml")), &scaled); err != nil {
		t.Fatal(err)
	}
	query := strings.TrimSpace(scaled.Spec.Triggers[0].Metadata.Query)
	counts := regexp.MustCompile(`(?ms)^-- name: CountReadyJobs :one\n(?:--[^\n]*\n)*(.*?);`).FindStringSubmatch(read(t, "../queries/supportcounts.sql"))
	product := strings.NewReplacer("@queue::text", "'mail'", "@most::integer", "10000").Replace(counts[1])
	if query != product {
		t.Errorf("the autoscaler asks:\n%s\nthe product:\n%s", query, product)
	}
	database := pgtest.New(t)
	enqueueNotes(t, database, 2)
	database.Exec(t, "INSERT INTO holdfast.queues (name) VALUES ('mail')")
	database.Exec(t, "UPDATE holdfast.inbox SET queue = 'mail'")
	if ready := pgtest.Value[int](t, database, query); ready != 2 {
		t.Errorf("%d jobs are ready, want 2", ready)
	}
}

// systemd takes a setting that it does not know for a remark.
func TestDeploy_SystemdKnowsEverySettingOfTheUnit(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		if os.Getenv("HOLDFAST_TEST_SYSTEMD") != "" {
			t.Fatal(err)
		}
		t.Skip("there is no systemd-analyze")
	}
	here, err := os.Executable() // The unit's own program is installed nowhere.
	if err != nil {
		t.Fatal(err)
	}
	unit := strings.Replace(read(t, "../deploy/systemd/holdfast-worker@.service"), "ExecStart=/usr/local/bin/holdfast", "ExecStart="+here, 1)
	copied := filepath.Join(t.TempDir(), "holdfast-worker@.service")
	if err := os.WriteFile(copied, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", "--recursive-errors=one", copied).CombinedOutput()
	if err != nil || strings.Contains(string(said), "Unknown") {
		t.Errorf("%v: %s", err, said)
	}
}
