// Package telemetry tells OpenTelemetry what workers do: metrics, and a span for each run of a
// handler that is linked to the span that enqueued its job. Nothing else of Holdfast imports
// OpenTelemetry, so a program that does not import this package does not link it.
//
//	observed, err := telemetry.New(meterProvider, tracerProvider)
//	…
//	worker, err := holdfast.NewWorker(pool, holdfast.Config{Observer: observed.Observer()}, handlers...)
//
// A producer adds telemetry.Inject(ctx) to its enqueue. Metrics lists the instruments.
package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

// scope names this package to the providers.
const scope = "github.com/holdfast-pg/holdfast/telemetry"

// Telemetry records what workers do. It may serve several workers of a process.
type Telemetry struct {
	meter  metric.Meter
	tracer trace.Tracer // nil: no spans.
	labels labels

	claimDuration, claimBatch, jobWait, handleDuration metric.Float64Histogram
	settleDuration, renewDuration                      metric.Float64Histogram
	housekeepingDuration, drainDuration                metric.Float64Histogram
	ringBuckets                                        metric.Int64UpDownCounter
	renewals, leaseLosses, fenceRefusals, deadLetters  metric.Int64Counter
	wakes, ringChanges, housekeepingItems              metric.Int64Counter
}

// New makes the instruments of a meter provider, and takes its tracer from a tracer provider.
// nil for either leaves metrics, or traces, out.
func New(meters metric.MeterProvider, tracers trace.TracerProvider) (*Telemetry, error) {
	if meters == nil {
		meters = noop.NewMeterProvider()
	}
	t := &Telemetry{meter: meters.Meter(scope)}
	if tracers != nil {
		t.tracer = tracers.Tracer(scope)
	}
	instruments := maker{meter: t.meter}
	t.claimDuration = instruments.histogram(claimDuration, statementBounds)
	t.claimBatch = instruments.histogram(claimBatch, batchBounds)
	t.jobWait = instruments.histogram(jobWait, longBounds)
	t.handleDuration = instruments.histogram(handleDuration, longBounds)
	t.settleDuration = instruments.histogram(settleDuration, statementBounds)
	t.renewDuration = instruments.histogram(renewDuration, statementBounds)
	t.housekeepingDuration = instruments.histogram(housekeepingDuration, longBounds)
	t.drainDuration = instruments.histogram(drainDuration, longBounds)
	instruments.watchedUpDownCounter(handlersRunning, t.observeRunning)
	t.ringBuckets = instruments.upDownCounter(ringBuckets)
	t.renewals = instruments.counter(leaseRenewals)
	t.leaseLosses = instruments.counter(leaseLosses)
	t.fenceRefusals = instruments.counter(fenceRefusals)
	t.deadLetters = instruments.counter(deadLetters)
	t.wakes = instruments.counter(wakes)
	t.ringChanges = instruments.counter(ringChanges)
	t.housekeepingItems = instruments.counter(housekeepingItems)
	return t, errors.Join(instruments.failed...)
}

// Observer returns what goes into a worker's Config.
func (t *Telemetry) Observer() worker.Observer {
	return worker.Observer{
		Claimed:     t.claimed,
		Started:     t.started,
		Handled:     t.handled,
		Flushed:     t.flushed,
		Settled:     t.settled,
		Renewed:     t.renewed,
		Lost:        t.lost,
		Woken:       t.woken,
		RingChanged: t.ringChanged,
		KeptHouse:   t.keptHouse,
		Drained:     t.drained,
	}
}

// background is what instruments get where no handler's context is near.
var background = context.Background()

func (t *Telemetry) claimed(fact worker.Claimed) {
	queue := t.labels.of(label{queue: fact.Queue})
	t.claimDuration.Record(background, fact.Took.Seconds(), queue.record...)
	if fact.Jobs > 0 {
		t.claimBatch.Record(background, float64(fact.Jobs), queue.record...)
	}
}

func (t *Telemetry) started(ctx context.Context, fact worker.Started) context.Context {
	kind := t.labels.kind(fact.Job.Queue, fact.Job.Kind)
	kind.running.Add(1)
	t.jobWait.Record(ctx, fact.Waited.Seconds(), kind.record...)
	return t.startSpan(ctx, fact, kind)
}

func (t *Telemetry) handled(ctx context.Context, fact worker.Handled) {
	kind := t.labels.kind(fact.Job.Queue, fact.Job.Kind)
	kind.running.Add(-1)
	t.handleDuration.Record(ctx, fact.Took.Seconds(), kind.outcomes[fact.Outcome.Verdict].record...)
	if errors.Is(fact.Err, domain.ErrFenced) {
		t.refused(fact.Job, "resource")
	}
	t.endSpan(ctx, fact)
}

// observeRunning tells how many handlers run. It is asked, because two more counts a job would be
// the dearest part of all.
func (t *Telemetry) observeRunning(_ context.Context, observer metric.Int64Observer) error {
	t.labels.eachKind(func(kind *kindLabels) {
		observer.Observe(kind.running.Load(), metric.WithAttributeSet(kind.label.set()))
	})
	return nil
}

func (t *Telemetry) flushed(fact worker.Flushed) {
	t.settleDuration.Record(background, fact.Took.Seconds())
}

func (t *Telemetry) settled(fact worker.Settled) {
	switch {
	case errors.Is(fact.Err, domain.ErrLeaseLost):
		t.refused(fact.Job, "settlement")
	case fact.Err == nil && (fact.Status == domain.StatusDeadLetter || fact.Status == domain.StatusFailed):
		t.died(fact.Job.Queue, fact.Job.Kind, fact.Status)
	}
}

func (t *Telemetry) refused(job domain.ClaimedJob, by string) {
	t.fenceRefusals.Add(background, 1, t.labels.of(t.labels.kind(job.Queue, job.Kind).with(attributeBy, by)).add...)
}

func (t *Telemetry) died(queue, kind string, status domain.Status) {
	t.deadLetters.Add(background, 1, t.labels.of(t.labels.kind(queue, kind).with(attributeStatus, string(status))).add...)
}

func (t *Telemetry) renewed(fact worker.Renewed) {
	t.renewDuration.Record(background, fact.Took.Seconds())
	count := func(result string, leases int) {
		if leases > 0 {
			t.renewals.Add(background, int64(leases), t.labels.of(label{name: attributeResult, value: result}).add...)
		}
	}
	if fact.Err != nil {
		count("unanswered", fact.Leases)
		return
	}
	count("renewed", fact.Leases-fact.Lost)
	count("lost", fact.Lost)
}

func (t *Telemetry) lost(fact worker.Lost) {
	reason := "ended"
	if fact.Overdue {
		reason = "overdue"
	}
	t.leaseLosses.Add(background, 1, t.labels.of(t.labels.kind(fact.Job.Queue, fact.Job.Kind).with(attributeReason, reason)).add...)
}

func (t *Telemetry) woken(fact worker.Woken) {
	t.wakes.Add(background, 1, t.labels.of(label{name: attributeSource, value: string(fact.By)}).add...)
}

func (t *Telemetry) ringChanged(fact worker.RingChanged) {
	queue := t.labels.of(label{queue: fact.Queue})
	t.ringBuckets.Add(background, int64(fact.Buckets-fact.Before), queue.add...)
	if fact.Workers > 0 {
		t.ringChanges.Add(background, 1, queue.add...)
	}
}

func (t *Telemetry) keptHouse(fact worker.KeptHouse) {
	result := "done"
	if fact.Err != nil {
		result = "failed"
	}
	t.housekeepingDuration.Record(background, fact.Took.Seconds(), t.labels.of(label{name: attributeResult, value: result}).record...)
	for _, job := range fact.Reclaimed {
		if job.Status == domain.StatusDeadLetter {
			t.died(job.Queue, job.Kind, job.Status)
		}
	}
	for _, done := range []struct {
		task  string
		count int64
	}{
		{"leases_reclaimed", int64(len(fact.Reclaimed))},
		{"workers_died", int64(len(fact.Report.WorkersDied))},
		{"workers_forgotten", fact.Report.WorkersForgotten},
		{"jobs_archived", fact.Report.JobsArchived},
		{"keys_expired", fact.Report.KeysExpired},
		{"marks_expired", fact.Report.MarksExpired},
		{"fences_expired", fact.Report.FencesExpired},
		{"archive_days_created", fact.Report.DaysCreated},
		{"archive_days_dropped", fact.Report.DaysDropped},
	} {
		// Also 0, so that a task that had nothing to do shows.
		t.housekeepingItems.Add(background, done.count, t.labels.of(label{name: attributeTask, value: done.task}).add...)
	}
}

func (t *Telemetry) drained(fact worker.Drained) {
	result := "done"
	if fact.Err != nil {
		result = "failed"
	}
	t.drainDuration.Record(background, fact.Took.Seconds(), t.labels.of(label{name: attributeResult, value: result}).record...)
}
