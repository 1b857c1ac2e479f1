package integration

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-pg/holdfast/telemetry"
)

const (
	alertsFile    = "../deploy/prometheus/alerts.yaml"
	alertTests    = "../deploy/prometheus/alerts_test.yaml"
	dashboardFile = "../deploy/grafana/holdfast.json"
)

var (
	metricName     = regexp.MustCompile(`\bholdfast_\w+`)
	alertNamed     = regexp.MustCompile(`(?m)^ +- alert: (\w+)$`)
	runbookSection = regexp.MustCompile(`(?m)^## (.+)$`)
	annotated      = regexp.MustCompile(`(?m)^ +(summary|runbook|command): (.+)$`)
	seriesOf       = strings.NewReplacer("_bucket", "", "_sum", "", "_count", "")
)

// listedMetrics are the names that Prometheus sees.
func listedMetrics() map[string]telemetry.Metric {
	listed := map[string]telemetry.Metric{}
	for _, metric := range telemetry.Metrics() {
		listed[metric.PrometheusName()] = metric
	}
	return listed
}

// wantListed checks that a metric, or the histogram that a series is of, is measured.
func wantListed(t *testing.T, where, name string) (metric string) {
	t.Helper()
	listed := listedMetrics()
	if _, known := listed[name]; known {
		return name
	}
	whole := seriesOf.Replace(name)
	if found, known := listed[whole]; !known || found.Type != telemetry.Histogram {
		t.Errorf("%s asks for %s, which nobody measures", where, name)
	}
	return whole
}

func TestDeploy_AlertsAskForWhatIsMeasured(t *testing.T) {
	t.Parallel()
	rules := read(t, alertsFile)
	for _, name := range metricName.FindAllString(rules, -1) {
		wantListed(t, alertsFile, name)
	}
	alerts := alertNamed.FindAllStringSubmatch(rules, -1)
	if len(alerts) == 0 {
		t.Fatal("there are no alerts")
	}
	tested := read(t, alertTests)
	var sections []string
	for _, match := range runbookSection.FindAllStringSubmatch(read(t, "../docs/runbook.md"), -1) {
		sections = append(sections, strings.ReplaceAll(strings.ToLower(match[1]), " ", "-"))
	}
	for i, alert := range alerts {
		rule := rules[strings.Index(rules, alert[0]):]
		if i+1 < len(alerts) {
			rule = rule[:strings.Index(rule, alerts[i+1][0])]
		}
		says := map[string]string{}
		for _, match := range annotated.FindAllStringSubmatch(rule, -1) {
			says[match[1]] = match[2]
		}
		section, named := strings.CutPrefix(says["runbook"], "docs/runbook.md#")
		if named && !slices.Contains(sections, section) {
			t.Errorf("%s names the section %s, which docs/runbook.md does not have", alert[1], section)
		}
		if says["summary"] == "" || !named || !strings.HasPrefix(says["command"], "holdfast ") {
			t.Errorf("%s does not name a summary, a section of the runbook and a command: %v", alert[1], says)
		}
		if !strings.Contains(tested, "alertname: "+alert[1]+"\n        exp_alerts:\n          - exp_labels:") {
			t.Errorf("no test of %s makes %s fire", alertTests, alert[1])
		}
	}
}

// Where there is no promtool, only its part is left out; CI installs it.
func TestDeploy_AlertsFireWhenTheyShould(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("HOLDFAST_TEST_PROMTOOL") != "" {
			t.Fatal(err)
		}
		t.Log("without promtool, of Debian's package prometheus, the alerts are not tested")
		return
	}
	for _, arguments := range [][]string{{"check", "rules", alertsFile}, {"test", "rules", alertTests}} {
		if out, err := exec.CommandContext(t.Context(), program, arguments...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(arguments, " "), err, out)
		}
	}
}

func TestDeploy_DashboardShowsWhatIsMeasured(t *testing.T) {
	t.Parallel()
	var dashboard struct {
		Title  string
		UID    string
		Panels []struct {
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, dashboardFile)), &dashboard); err != nil {
		t.Fatal(err)
	}
	if dashboard.Title == "" || dashboard.UID == "" || len(dashboard.Panels) == 0 {
		t.Fatalf("%+v", dashboard)
	}
	taken := map[[2]int]string{}
	shown := map[string]bool{}
	for _, panel := range dashboard.Panels {
		at := panel.GridPos
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q lies over %q, or beyond the edge", panel.Title, other)
				}
				taken[[2]int{x, y}] = panel.Title
			}
		}
		if panel.Title == "" || len(panel.Targets) == 0 {
			t.Errorf("panel %q shows nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			names := metricName.FindAllString(target.Expr, -1)
			if len(names) == 0 {
				t.Errorf("panel %q asks for no metric: %s", panel.Title, target.Expr)
			}
			for _, name := range names {
				shown[wantListed(t, "panel "+panel.Title, name)] = true
			}
		}
	}
	for name := range listedMetrics() {
		if !shown[name] {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}
