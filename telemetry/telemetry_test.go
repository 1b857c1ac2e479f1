package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
	"github.com/holdfast-pg/holdfast/telemetry"
	"github.com/holdfast-pg/holdfast/worker"
)

// measured are metrics that a test reads.
type measured struct {
	*telemetry.Telemetry

	reader *sdkmetric.ManualReader
}

func newMeasured(t *testing.T) measured {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	observed, err := telemetry.New(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return measured{observed, reader}
}

// collect returns what was measured so far, by name.
func (m measured) collect(t *testing.T) map[string]metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := m.reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	found := map[string]metricdata.Metrics{}
	for _, scope := range all.ScopeMetrics {
		for _, each := range scope.Metrics {
			found[each.Name] = each
		}
	}
	return found
}

// points are the values of a metric, by its attributes as k=v,k=v; of a histogram, how many.
func points(of metricdata.Metrics) map[string]float64 {
	values := map[string]float64{}
	switch data := of.Data.(type) {
	case metricdata.Sum[int64]:
		for _, point := range data.DataPoints {
			values[point.Attributes.Encoded(encoder)] = float64(point.Value)
		}
	case metricdata.Histogram[float64]:
		for _, point := range data.DataPoints {
			values[point.Attributes.Encoded(encoder)] = float64(point.Count)
		}
	}
	return values
}

func wantPoint(t *testing.T, found map[string]metricdata.Metrics, name, attributes string, want float64) {
	t.Helper()
	if got, some := points(found[name])[attributes]; !some || got != want {
		t.Errorf("%s{%s} is %v, want %v: %v", name, attributes, got, want, points(found[name]))
	}
}

// work runs a worker over an installation in memory, whose jobs the caller enqueues first.
func work(t *testing.T, observer worker.Observer, queue *model.Queue, lasting time.Duration, handlers ...worker.Handler) {
	t.Helper()
	made, err := worker.New(queue, worker.Config{Observer: observer, Logger: slog.New(slog.DiscardHandler), PollOnly: true, Lease: 9 * time.Second, Housekeeping: 5 * time.Second}, handlers...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), lasting)
	defer stop()
	if err := made.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

func enqueue(t *testing.T, queue *model.Queue, job model.NewJob) domain.JobID {
	t.Helper()
	enqueued, err := queue.Enqueue(context.Background(), job)
	if err != nil {
		t.Fatal(err)
	}
	return enqueued.ID
}

func TestTelemetry_MeasuresWhatAWorkerDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMeasured(t)
		queue := model.New(model.Settings{BucketCount: 16, Now: time.Now})
		for i := range 3 {
			enqueue(t, queue, model.NewJob{Kind: "send", Key: fmt.Sprintf("order:%d", i)})
		}
		enqueue(t, queue, model.NewJob{Kind: "break", MaxAttempts: 1})
		var mutex sync.Mutex
		running := map[string]float64{}
		work(t, m.Observer(), queue, 20*time.Second,
			worker.HandleKind("send", func(ctx context.Context, _ domain.ClaimedJob) error {
				<-time.After(5 * time.Second)
				mutex.Lock()
				maps.Copy(running, points(m.collect(t)["holdfast.handlers.running"]))
				mutex.Unlock()
				<-time.After(time.Second)
				return ctx.Err()
			}),
			worker.HandleKind("break", func(context.Context, domain.ClaimedJob) error { return errors.New("no") }))
		found := m.collect(t)
		if running["kind=send,queue=default"] != 3 {
			t.Errorf("running meanwhile: %v", running)
		}
		wantPoint(t, found, "holdfast.handlers.running", "kind=send,queue=default", 0)
		wantPoint(t, found, "holdfast.claim.batch", "queue=default", 1)
		wantPoint(t, found, "holdfast.job.wait", "kind=send,queue=default", 3)
		wantPoint(t, found, "holdfast.handle.duration", "kind=send,outcome=complete,queue=default", 3)
		wantPoint(t, found, "holdfast.handle.duration", "kind=break,outcome=retry,queue=default", 1)
		wantPoint(t, found, "holdfast.dead_letters", "kind=break,queue=default,status=dead_letter", 1)
		wantPoint(t, found, "holdfast.ring.changes", "queue=default", 1)
		wantPoint(t, found, "holdfast.ring.buckets", "queue=default", 0)
		wantPoint(t, found, "holdfast.drain.duration", "result=done", 1)
		if points(found["holdfast.lease.renewals"])["result=renewed"] == 0 || points(found["holdfast.wakes"])["source=poll"] == 0 ||
			points(found["holdfast.housekeeping.duration"])["result=done"] == 0 {
			t.Errorf("not all is measured: %v", found)
		}
		for _, each := range found {
			for attributes := range points(each) {
				if strings.Contains(attributes, "order:") {
					t.Errorf("%s has a partition key: %s", each.Name, attributes)
				}
			}
		}
	})
}

// tellEverything passes facts of every sort, and with every value of every attribute.
func tellEverything(o worker.Observer) {
	job := domain.ClaimedJob{Queue: "default", Kind: "send"}
	ctx := context.Background()
	o.Claimed(worker.Claimed{Queue: "default", Jobs: 3, Took: time.Millisecond})
	for _, verdict := range []domain.Verdict{domain.Complete, domain.Retry, domain.Fail, domain.Release} {
		o.Handled(o.Started(ctx, worker.Started{Job: job}), worker.Handled{Job: job, Outcome: domain.Outcome{Verdict: verdict}, Err: domain.ErrFenced})
	}
	o.Flushed(worker.Flushed{Jobs: 1})
	o.Settled(worker.Settled{Job: job, Err: domain.ErrLeaseLost})
	o.Settled(worker.Settled{Job: job, Status: domain.StatusDeadLetter})
	o.Settled(worker.Settled{Job: job, Status: domain.StatusFailed})
	o.Renewed(worker.Renewed{Leases: 2, Lost: 1})
	o.Renewed(worker.Renewed{Leases: 2, Err: errors.New("cut")})
	o.Lost(worker.Lost{Job: job})
	o.Lost(worker.Lost{Job: job, Overdue: true})
	for _, by := range []worker.WakeSource{worker.WakeNotify, worker.WakeDue, worker.WakePoll} {
		o.Woken(worker.Woken{By: by})
	}
	o.RingChanged(worker.RingChanged{Queue: "default", Workers: 2, Buckets: 512})
	o.KeptHouse(worker.KeptHouse{Reclaimed: []domain.Reclaimed{{Queue: "default", Kind: "send", Status: domain.StatusDeadLetter}}})
	o.KeptHouse(worker.KeptHouse{Err: errors.New("cut")})
	o.Drained(worker.Drained{})
	o.Drained(worker.Drained{Err: errors.New("cut")})
}

func TestTelemetry_MeasuresWhatMetricsLists(t *testing.T) {
	t.Parallel()
	m := newMeasured(t)
	tellEverything(m.Observer())
	found := m.collect(t)
	for _, listed := range telemetry.Metrics() {
		if listed.Type == telemetry.Gauge {
			continue // Those need a database: integration/telemetry_test.go.
		}
		got, measured := found[listed.Name]
		delete(found, listed.Name)
		if !measured || got.Unit != listed.Unit || got.Description != listed.Meaning {
			t.Errorf("%s is listed as %+v and measured as %+v", listed.Name, listed, got)
			continue
		}
		for attributes := range points(got) {
			var names []string
			for pair := range strings.SplitSeq(attributes, ",") {
				name, value, _ := strings.Cut(pair, "=")
				if name == "" {
					continue
				}
				names = append(names, name)
				if name != "queue" && name != "kind" && !strings.Contains(listed.Meaning, value) {
					t.Errorf("the meaning of %s does not name its %s %q", listed.Name, name, value)
				}
			}
			slices.Sort(names)
			if want := slices.Sorted(slices.Values(listed.Attributes)); !slices.Equal(names, want) {
				t.Errorf("%s has the attributes %v, listed are %v", listed.Name, names, want)
			}
		}
	}
	for name := range found {
		t.Errorf("%s is measured and not listed", name)
	}
}

// A worker of any kind gets what producers come up with.
func TestTelemetry_KindsAreBounded(t *testing.T) {
	t.Parallel()
	m := newMeasured(t)
	observer := m.Observer()
	for i := range 5000 {
		job := domain.ClaimedJob{Queue: "default", Kind: fmt.Sprint("kind", i)}
		observer.Handled(observer.Started(context.Background(), worker.Started{Job: job}), worker.Handled{Job: job})
	}
	running := points(m.collect(t)["holdfast.handlers.running"])
	if len(running) != 201 || running["kind=kind0,queue=default"] != 0 {
		t.Errorf("%d kinds", len(running))
	}
	for attributes, value := range running {
		if value != 0 {
			t.Errorf("%s: %v are running", attributes, value)
		}
	}
	if _, counted := running["kind=_other,queue=default"]; !counted {
		t.Error("kinds beyond the bound are not counted")
	}
}

func TestTelemetry_WorksWithoutProviders(t *testing.T) {
	t.Parallel()
	observed, err := telemetry.New(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	tellEverything(observed.Observer())
}
