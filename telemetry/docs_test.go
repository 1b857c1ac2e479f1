package telemetry_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-pg/holdfast/telemetry"
)

// row is a metric as the table of docs/telemetry.md has it.
func row(metric telemetry.Metric) string {
	attributes := "none"
	if len(metric.Attributes) > 0 {
		attributes = "`" + strings.Join(metric.Attributes, "`, `") + "`"
	}
	return fmt.Sprintf("| `%s` | `%s` | %s | %s | %s | %s |",
		metric.Name, metric.PrometheusName(), metric.Type, strings.Trim(metric.Unit, "{}"), attributes, metric.Meaning)
}

func TestDocs_EveryMetricHasItsRow(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, metric := range telemetry.Metrics() {
		want = append(want, row(metric))
	}
	got := regexp.MustCompile("(?m)^\\| `holdfast\\.[a-z_.]+` \\| `holdfast_.*$").FindAllString(string(document), -1)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the table of docs/telemetry.md is not that of telemetry.Metrics, which is:\n%s", strings.Join(want, "\n"))
	}
}
