package telemetry_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
	"github.com/holdfast-pg/holdfast/telemetry"
	"github.com/holdfast-pg/holdfast/worker"
)

var encoder = attribute.DefaultEncoder()

// headersOf are the headers that an enqueue with the options sends.
func headersOf(t *testing.T, options ...domain.EnqueueOption) json.RawMessage {
	t.Helper()
	terms, err := domain.TermsOf(options...)
	if err != nil {
		t.Fatal(err)
	}
	return terms.Headers
}

func TestTrace_EveryRunIsLinkedToTheEnqueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		recorder := tracetest.NewSpanRecorder()
		tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
		observed, err := telemetry.New(nil, tracers)
		if err != nil {
			t.Fatal(err)
		}
		enqueuing, producer := tracers.Tracer("shop").Start(context.Background(), "place order")
		queue := model.New(model.Settings{BucketCount: 16, Now: time.Now})
		id := enqueue(t, queue, model.NewJob{Kind: "send", Headers: headersOf(t, domain.Headers(map[string]string{"tenant": "a"}), telemetry.Inject(enqueuing))})
		producer.End()
		runs := 0
		work(t, observed.Observer(), queue, time.Minute, worker.HandleKind("send", func(ctx context.Context, _ domain.ClaimedJob) error {
			_, inside := tracers.Tracer("shop").Start(ctx, "smtp")
			defer inside.End()
			if runs++; runs == 1 {
				return errors.New("421 try later")
			}
			return nil
		}))
		var consumers []sdktrace.ReadOnlySpan
		inside := map[trace.SpanID]string{}
		for _, span := range recorder.Ended() {
			switch span.Name() {
			case "process send":
				consumers = append(consumers, span)
			case "smtp":
				inside[span.Parent().SpanID()] = span.Name()
			}
		}
		if len(consumers) != 2 {
			t.Fatalf("%d spans of runs, want 2", len(consumers))
		}
		for i, span := range consumers {
			if span.SpanKind() != trace.SpanKindConsumer || span.Parent().IsValid() {
				t.Errorf("run %d: kind %s, parent %v", i+1, span.SpanKind(), span.Parent())
			}
			if links := span.Links(); len(links) != 1 || !links[0].SpanContext.Equal(producer.SpanContext().WithRemote(true)) {
				t.Errorf("run %d: links %v, want one to the producer", i+1, links)
			}
			if inside[span.SpanContext().SpanID()] == "" {
				t.Errorf("run %d: the handler's span is not its child", i+1)
			}
			set := attribute.NewSet(span.Attributes()...)
			if got, _ := set.Value("messaging.message.id"); got.AsString() != id.String() {
				t.Errorf("run %d: attributes %s", i+1, set.Encoded(encoder))
			}
			wanted := []string{"retry", ""}[i]
			if outcome, _ := set.Value("holdfast.outcome"); outcome.AsString() != wanted {
				t.Errorf("run %d: outcome %q, want %q", i+1, outcome.AsString(), wanted)
			}
			if attempt, _ := set.Value("holdfast.attempt"); attempt.AsInt64() != int64(i+1) {
				t.Errorf("run %d: attributes %s", i+1, set.Encoded(encoder))
			}
		}
		if status := consumers[0].Status(); status.Code != codes.Error || status.Description != "421 try later" {
			t.Errorf("status of the first run: %v", status)
		}
		if status := consumers[1].Status(); status.Code != codes.Unset {
			t.Errorf("status of the second run: %v", status)
		}
	})
}

func TestTrace_InjectKeepsOtherHeaders(t *testing.T) {
	t.Parallel()
	ctx, span := sdktrace.NewTracerProvider().Tracer("shop").Start(context.Background(), "place order")
	defer span.End()
	for name, headers := range map[string]json.RawMessage{
		"before": headersOf(t, telemetry.Inject(ctx), domain.Headers(map[string]string{"tenant": "a"})),
		"after":  headersOf(t, domain.Headers(map[string]string{"tenant": "a"}), telemetry.Inject(ctx)),
	} {
		var sent map[string]string
		if err := json.Unmarshal(headers, &sent); err != nil || sent["tenant"] != "a" || sent["traceparent"] == "" {
			t.Errorf("%s: %s, %v", name, headers, err)
		}
		if producer := telemetry.Producer(domain.ClaimedJob{Headers: headers}); !producer.Equal(span.SpanContext().WithRemote(true)) {
			t.Errorf("%s: the producer is %v", name, producer)
		}
	}
	if headers := headersOf(t, telemetry.Inject(context.Background())); headers != nil {
		t.Errorf("without a span: %s", headers)
	}
}

func TestTrace_OddHeadersHaveNoProducer(t *testing.T) {
	t.Parallel()
	for _, headers := range []string{"", "null", "[1]", "{}", `{"traceparent": 7}`, `{"traceparent": "00-1"}`, `{"tenant": {"a": 1}}`} {
		if producer := telemetry.Producer(domain.ClaimedJob{Headers: json.RawMessage(headers)}); producer.IsValid() {
			t.Errorf("%s: %v", headers, producer)
		}
	}
}
