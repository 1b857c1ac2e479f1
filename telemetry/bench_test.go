package telemetry_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/telemetry"
	"github.com/holdfast-pg/holdfast/worker"
)

// What metrics add to a job that is done at the first attempt.
func BenchmarkTelemetry_Job(b *testing.B) {
	workOffJobs(b, sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())), nil)
}

// What its span adds, where one in so many is recorded.
func BenchmarkTelemetry_Span(b *testing.B) {
	for _, share := range []float64{0, 0.01, 1} {
		b.Run(strconv.FormatFloat(share, 'g', -1, 64), func(b *testing.B) {
			tracers := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.TraceIDRatioBased(share)), sdktrace.WithBatcher(tracetest.NewNoopExporter()))
			defer func() { _ = tracers.Shutdown(context.Background()) }()
			workOffJobs(b, nil, tracers)
		})
	}
}

func workOffJobs(b *testing.B, meters metric.MeterProvider, tracers trace.TracerProvider) {
	b.Helper()
	observed, err := telemetry.New(meters, tracers)
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
