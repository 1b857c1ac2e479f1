package telemetry

import (
	"context"
	"encoding/json"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

// w3c is how a trace context is written into a job's headers: https://www.w3.org/TR/trace-context/.
var w3c propagation.TraceContext

// Inject returns an option of Enqueue that sends the span of the context along with the job, in
// the headers traceparent and tracestate. Each run of the job's handler is a trace of its own
// with a link to it. Without a span it adds nothing.
func Inject(ctx context.Context) domain.EnqueueOption {
	headers := propagation.MapCarrier{}
	w3c.Inject(ctx, headers)
	return domain.Headers(headers)
}

// Producer returns the span that enqueued a job, as far as its headers tell.
func Producer(job domain.ClaimedJob) trace.SpanContext {
	var headers struct {
		Parent string `json:"traceparent"`
		State  string `json:"tracestate"`
	}
	if len(job.Headers) == 0 || json.Unmarshal(job.Headers, &headers) != nil {
		return trace.SpanContext{}
	}
	carrier := propagation.MapCarrier{"traceparent": headers.Parent, "tracestate": headers.State}
	return trace.SpanContextFromContext(w3c.Extract(context.Background(), carrier))
}

// startSpan begins the span of a handler. It is linked to the producer's and not its child: the
// job may run days later and several times.
func (t *Telemetry) startSpan(ctx context.Context, fact worker.Started, kind *kindLabels) context.Context {
	if t.tracer == nil {
		return ctx
	}
	options := kind.span
	if producer := Producer(fact.Job); producer.IsValid() {
		options = append(slices.Clip(options), trace.WithLinks(trace.Link{SpanContext: producer}))
	}
	ctx, span := t.tracer.Start(ctx, kind.spanName(fact.Job.Kind), options...)
	if span.IsRecording() { // Most are not, where one in a hundred is.
		span.SetAttributes(
			attribute.String("messaging.message.id", fact.Job.ID.String()),
			attribute.String("holdfast.kind", fact.Job.Kind),
			attribute.Int("holdfast.bucket", fact.Job.Bucket),
			attribute.Int64("holdfast.generation", fact.Job.Generation),
			attribute.Int("holdfast.attempt", fact.Job.Attempt),
			attribute.String("holdfast.worker_id", fact.Job.WorkerID),
			attribute.Float64("holdfast.waited_seconds", fact.Waited.Seconds()),
		)
	}
	return ctx
}

// spanOptions are those of each span of a queue. A sampler sees these attributes.
func spanOptions(queue string) []trace.SpanStartOption {
	return []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(
			attribute.String("messaging.system", "holdfast"),
			attribute.String("messaging.operation.type", "process"),
			attribute.String("messaging.destination.name", queue),
		),
	}
}

// endSpan ends the span of a handler. An attempt that counts as failed makes it an error.
func (t *Telemetry) endSpan(ctx context.Context, fact worker.Handled) {
	if t.tracer == nil {
		return
	}
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	if fact.Outcome.Verdict != domain.Complete { // One more attribute would double what the SDK keeps for each span.
		span.SetAttributes(attribute.String("holdfast.outcome", fact.Outcome.Verdict.String()))
	}
	if fact.Outcome.Verdict == domain.Retry || fact.Outcome.Verdict == domain.Fail {
		span.SetStatus(codes.Error, fact.Outcome.Error)
	}
	span.End()
}
