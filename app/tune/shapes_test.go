package tune_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/holdfast-pg/holdfast/app/tune"
)

var update = flag.Bool("update", false, "write the golden files anew")

// shapes are the three workloads that docs/tuning.md goes through.
var shapes = map[string]tune.Workload{
	"fast": {
		Rate: 2000, P50: seconds(2 * time.Millisecond), P99: seconds(10 * time.Millisecond), Payload: 512,
		Workers: 1, Cores: 4, MostSlots: tune.DefaultMostSlots, Connections: tune.DefaultConnections,
	},
	"http": {
		Rate: 100, P50: seconds(300 * time.Millisecond), P99: seconds(5 * time.Second), Payload: 1024,
		Workers: 2, Cores: 2, MostSlots: tune.DefaultMostSlots, Connections: tune.DefaultConnections,
	},
	"reports": {
		Rate: 0.05, P50: seconds(2 * time.Minute), P99: seconds(15 * time.Minute), Payload: 512, Held: 1,
		Workers: 3, Cores: 4, MostSlots: tune.DefaultMostSlots, Connections: tune.DefaultConnections,
	},
}

func seconds(d time.Duration) tune.Seconds { return tune.Seconds(d) }

// written is a report as a text.
func written(report tune.Report) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, s := range report.Settings {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.Setting, s.Current, s.Recommended, s.Rule)
	}
	_ = table.Flush()
	for _, conflict := range report.Conflicts {
		fmt.Fprintf(&text, "conflict: %s: %s\n", strings.Join(conflict.Between, ", "), conflict.What)
	}
	for _, lack := range report.Lacks {
		fmt.Fprintf(&text, "lack: %s %d: %s. Needs %s\n", lack.Of, lack.By, lack.What, lack.Needs)
	}
	return text.String()
}

func TestShapes_AdviceIsAsItWas(t *testing.T) {
	t.Parallel()
	for name, workload := range shapes {
		if err := workload.Check(); err != nil {
			t.Fatal(err)
		}
		report := tune.Advise(workload, tune.Current{Values: tune.Defaults(workload.Cores)})
		got := written(report) + "\n" + tune.Recommend(workload).GoLiteral(workload)
		path := "testdata/" + name + ".txt"
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s is not what the advice is (go test ./app/tune -update writes it anew):\n%s", path, got)
		}
	}
}
