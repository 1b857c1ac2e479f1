package integration

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/holdfast-pg/holdfast/app"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
	"github.com/holdfast-pg/holdfast/telemetry"
)

var servedOn = regexp.MustCompile(`"serving metrics and probes","address":"([^"]+)"`)

// observed starts `holdfast work --listen` on a free port and returns its address.
func observed(t *testing.T, url string, args ...string) (p *process, address string) {
	t.Helper()
	p = newProcess(t, url, append([]string{"work", "--listen", "127.0.0.1:0", "--log-format", "json"}, args...)...).start(t)
	p.says(t, "serving metrics and probes")
	return p, "http://" + servedOn.FindStringSubmatch(p.stderr.String())[1]
}

// get asks for a page; 0: nobody answers.
func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// wantProbe checks the status of a probe, and what it says word for word.
func wantProbe(t *testing.T, url string, status int, body string) {
	t.Helper()
	if gotStatus, gotBody := get(t, url); gotStatus != status || strings.TrimSpace(gotBody) != body {
		t.Errorf("%s answers %d %s, want %d %s", url, gotStatus, gotBody, status, body)
	}
}

const readyBody = `{"ok":true,"checks":[{"check":"worker","ok":true},{"check":"database","ok":true},{"check":"schema","ok":true}]}`

func TestCLI_WorkListenServesMetricsAndProbes(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	enqueueCLI(t, database, "greet", `{"secret":"s3cret"}`, "--key", "order:9182")
	p, address := observed(t, database.URL, "--exec", "cat >/dev/null; sleep 1; exit 65")
	pgtest.Eventually(t, patience, "the worker is ready", func() bool {
		status, _ := get(t, address+"/readyz")
		return status == http.StatusOK
	})
	wantProbe(t, address+"/readyz", http.StatusOK, readyBody)
	wantProbe(t, address+"/livez", http.StatusOK, `{"ok":true,"checks":[{"check":"loops","ok":true}]}`)
	var metrics string
	pgtest.Eventually(t, patience, "the job is counted", func() bool {
		_, metrics = get(t, address+"/metrics")
		return strings.Contains(metrics, `holdfast_dead_letters_total{kind="greet",queue="default",status="failed"} 1`)
	})
	for _, line := range []string{
		`holdfast_handle_duration_seconds_count{kind="greet",outcome="fail",queue="default"} 1`,
		`holdfast_ring_buckets{queue="default"} 1024`,
		`holdfast_queue_oldest_ready_age_seconds{queue="default"} `,
		"# TYPE holdfast_claim_duration_seconds histogram",
		`service_name="holdfast"`,
	} {
		if !strings.Contains(metrics, line) {
			t.Errorf("the metrics have no line with %s:\n%s", line, metrics)
		}
	}
	for _, never := range []string{"s3cret", "order:9182", database.URL} {
		if strings.Contains(metrics, never) {
			t.Errorf("the metrics tell %s", never)
		}
	}
	if status, _ := get(t, address+"/debug/pprof/"); status != http.StatusNotFound {
		t.Errorf("another page answers %d, want 404", status)
	}
	p.signal(t, syscall.SIGTERM)
	p.ends(t, 0)
}

// A name that a rule of Prometheus, or the dashboard, uses is one that the endpoint has.
func TestCLI_WorkListenNamesMetricsAsListed(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	enqueueCLI(t, database, "greet", `1`)
	p, address := observed(t, database.URL, "--exec", "exit 65", "--housekeeping", "1s")
	listed := map[string]bool{}
	for _, metric := range telemetry.Metrics() {
		listed[metric.PrometheusName()] = true
	}
	served := map[string]bool{}
	pgtest.Eventually(t, patience, "housekeeping is measured", func() bool {
		_, metrics := get(t, address+"/metrics")
		for _, match := range regexp.MustCompile(`(?m)^# TYPE (\S+) `).FindAllStringSubmatch(metrics, -1) {
			served[match[1]] = true
		}
		return served["holdfast_housekeeping_duration_seconds"] && served["holdfast_dead_letters_total"]
	})
	for name := range served {
		if !listed[name] && name != "target_info" {
			t.Errorf("%s is served and not listed", name)
		}
	}
	if len(served) < 10 {
		t.Errorf("served are only %v", served)
	}
	p.signal(t, syscall.SIGTERM)
	p.ends(t, 0)
}

func TestCLI_WorkListenIsNotReadyWhileItDrains(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	enqueueCLI(t, database, "hold", `1`)
	// It ends when the test has seen enough.
	p, address := observed(t, database.URL, "--exec", "echo holding; while [ ! -e "+t.TempDir()+"/done ]; do sleep 0.05; done", "--drain-deadline", "2s")
	p.says(t, "holding")
	wantProbe(t, address+"/readyz", http.StatusOK, readyBody)
	p.signal(t, syscall.SIGTERM)
	p.says(t, "worker draining")
	wantProbe(t, address+"/readyz", http.StatusServiceUnavailable,
		`{"ok":false,"checks":[{"check":"worker","ok":false,"why":"it is draining: it claims no more jobs"},{"check":"database","ok":true},{"check":"schema","ok":true}]}`)
	wantProbe(t, address+"/livez", http.StatusOK, `{"ok":true,"checks":[{"check":"loops","ok":true}]}`)
	p.ends(t, 0)
	if status, _ := get(t, address+"/readyz"); status != 0 {
		t.Errorf("after the end the port answers %d", status)
	}
}

func TestCLI_WorkListenSaysWhyItIsNotReady(t *testing.T) {
	t.Parallel()
	p, address := observed(t, "postgres://me:s3cret@127.0.0.1:1/nowhere", "--exec", "true")
	status, body := get(t, address+"/readyz")
	var report app.ProbeReport
	if err := json.Unmarshal([]byte(body), &report); err != nil || status != http.StatusServiceUnavailable || report.OK {
		t.Errorf("%d %s, %v", status, body, err)
	}
	want := `{"ok":false,"checks":[{"check":"worker","ok":false,"why":"it has not joined yet"},` +
		`{"check":"database","ok":false,"why":"it does not answer within 2s: the worker's log says why"},{"check":"schema","ok":false,"why":"nobody knows"}]}`
	wantProbe(t, address+"/readyz", http.StatusServiceUnavailable, want)
	// A restart would not help.
	wantProbe(t, address+"/livez", http.StatusOK, `{"ok":true,"checks":[{"check":"loops","ok":true}]}`)
	if status, _ := get(t, address+"/metrics"); status != http.StatusOK {
		t.Errorf("without a database the metrics answer %d", status)
	}
	p.signal(t, syscall.SIGTERM)
	p.ends(t, 0)
}

func TestCLI_WorkListenRefusesAnAddressThatIsTaken(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	_, address := observed(t, database.URL, "--exec", "true")
	second := runCLI(t, database, 1, "work", "--exec", "true", "--listen", strings.TrimPrefix(address, "http://"))
	wantOutput(t, &second.stderr, "serve metrics and probes: listen tcp", "address already in use")
	if strings.Contains(second.stderr.String(), "worker joined") {
		t.Error("it has joined all the same")
	}
}

// ages reads the gauge of the oldest ready job, by queue.
func ages(t *testing.T, reader *sdkmetric.ManualReader) map[string]float64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, scope := range all.ScopeMetrics {
		for _, each := range scope.Metrics {
			if gauge, right := each.Data.(metricdata.Gauge[float64]); right && each.Name == "holdfast.queue.oldest_ready_age" {
				for _, point := range gauge.DataPoints {
					queue, _ := point.Attributes.Value("queue")
					found[queue.AsString()] = point.Value
				}
			}
		}
	}
	return found
}

func TestTelemetry_OldestReadyAgeIsReadNowAndThen(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	id := enqueueCLI(t, database, "greet", `1`)
	database.Exec(t, "UPDATE holdfast.inbox SET available_at = now() - interval '10 minutes' WHERE id = $1", id.String())
	newReader := func() *sdkmetric.ManualReader {
		reader := sdkmetric.NewManualReader()
		made, err := telemetry.New(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), nil)
		if err != nil {
			t.Fatal(err)
		}
		stop, err := made.WatchQueues(database.Pool, "default", "unknown")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = stop() })
		return reader
	}
	reader := newReader()
	first := ages(t, reader)
	if age := first["default"]; age < 600 || age > 600+patience.Seconds() {
		t.Errorf("ages %v, want 600 s of the queue default", first)
	}
	if age, told := first["unknown"]; !told || age != 0 {
		t.Errorf("ages %v, want 0 of a queue that nobody has enqueued to", first)
	}
	database.Exec(t, "DELETE FROM holdfast.inbox WHERE id = $1", id.String())
	if again := ages(t, reader); again["default"] != first["default"] {
		t.Errorf("the age was read again at once: %v", again)
	}
	if later := ages(t, newReader()); later["default"] != 0 {
		t.Errorf("of an empty queue: %v", later)
	}
	if _, err := domain.SetQueue(t.Context(), database.Pool, "default", domain.QueueChange{Ordered: new(true)}); err != nil {
		t.Fatal(err)
	}
	if later, told := ages(t, newReader())["default"]; told {
		t.Errorf("of an ordered queue: %v", later)
	}
}
