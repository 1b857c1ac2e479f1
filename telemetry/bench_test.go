package telemetry_test

import (
	"context"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/telemetry"
	"github.com/holdfast-pg/holdfast/worker"
)

// What metrics add to a job that is done at the first attempt.
func BenchmarkTelemetry_Job(b *testing.B) {
	observed, err := telemetry.New(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())), nil)
	if err != nil {
		b.Fatal(err)
	}
	observer := observed.Observer()
	job := domain.ClaimedJob{Queue: "default", Kind: "send"}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		handling := observer.Started(ctx, worker.Started{Job: job, Waited: time.Millisecond})
		observer.Handled(handling, worker.Handled{Job: job, Took: time.Millisecond})
		observer.Settled(worker.Settled{Job: job, Status: domain.StatusCompleted})
	}
}
