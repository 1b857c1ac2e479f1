package telemetry

import (
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/metric"
)

// MetricType is a sort of instrument.
type MetricType string

// The sorts of instruments.
const (
	Counter       MetricType = "counter"
	UpDownCounter MetricType = "up-down counter"
	Gauge         MetricType = "gauge"
	Histogram     MetricType = "histogram"
)

// Metric describes an instrument.
type Metric struct {
	Name       string
	Type       MetricType
	Unit       string // UCUM: s, or what is counted in braces.
	Attributes []string
	Meaning    string
}

// PrometheusName is what the metric is called on a Prometheus endpoint. A histogram has the
// series _bucket, _sum and _count.
func (m Metric) PrometheusName() string {
	name := strings.ReplaceAll(m.Name, ".", "_")
	if m.Unit == "s" {
		name += "_seconds"
	}
	if m.Type == Counter {
		name += "_total"
	}
	return name
}

// What is measured. docs/telemetry.md has the same table.
var (
	claimDuration = Metric{
		"holdfast.claim.duration", Histogram, "s",
		[]string{attributeQueue},
		"Time of a claim statement, also of one that found nothing.",
	}
	claimBatch = Metric{
		"holdfast.claim.batch", Histogram, "{job}",
		[]string{attributeQueue},
		"Jobs of a claim that found some.",
	}
	jobWait = Metric{
		"holdfast.job.wait", Histogram, "s",
		[]string{attributeQueue, attributeKind},
		"Time from when a job could first be claimed until its handler started.",
	}
	handleDuration = Metric{
		"holdfast.handle.duration", Histogram, "s",
		[]string{attributeQueue, attributeKind, attributeOutcome},
		"Time of a handler; outcome is complete, retry, fail or release.",
	}
	handlersRunning = Metric{
		"holdfast.handlers.running", UpDownCounter, "{job}",
		[]string{attributeQueue, attributeKind},
		"Jobs in flight: handlers that are running.",
	}
	settleDuration = Metric{
		"holdfast.settle.duration", Histogram, "s",
		nil,
		"Time to record a batch of results.",
	}
	renewDuration = Metric{
		"holdfast.renew.duration", Histogram, "s",
		nil,
		"Time of a statement that renews leases.",
	}
	leaseRenewals = Metric{
		"holdfast.lease.renewals", Counter, "{lease}",
		[]string{attributeResult},
		"Leases to renew; result is renewed, lost or unanswered.",
	}
	leaseLosses = Metric{
		"holdfast.lease.losses", Counter, "{lease}",
		[]string{attributeQueue, attributeKind, attributeReason},
		"Jobs given up before they were settled; reason is ended, says the database, or overdue, when no renewal got through in time.",
	}
	fenceRefusals = Metric{
		"holdfast.fence.refusals", Counter, "{job}",
		[]string{attributeQueue, attributeKind, attributeBy},
		"Results and effects of claims that were over; by is settlement, or resource for ErrFenced from a handler.",
	}
	deadLetters = Metric{
		"holdfast.dead_letters", Counter, "{job}",
		[]string{attributeQueue, attributeKind, attributeStatus},
		"Jobs that nobody tries again; status is dead_letter, when the attempts are spent, or failed.",
	}
	wakes = Metric{
		"holdfast.wakes", Counter, "{wake}",
		[]string{attributeSource},
		"Waits for work that have ended; source is notify, due or poll.",
	}
	ringBuckets = Metric{
		"holdfast.ring.buckets", UpDownCounter, "{bucket}",
		[]string{attributeQueue},
		"Buckets that the worker owns.",
	}
	ringChanges = Metric{
		"holdfast.ring.changes", Counter, "{change}",
		[]string{attributeQueue},
		"Times that the workers of a queue have changed.",
	}
	housekeepingDuration = Metric{
		"holdfast.housekeeping.duration", Histogram, "s",
		[]string{attributeResult},
		"Time of a round of housekeeping; result is done or failed.",
	}
	housekeepingItems = Metric{
		"holdfast.housekeeping.items", Counter, "{item}",
		[]string{attributeTask},
		"What housekeeping did; task is leases_reclaimed, workers_died, workers_forgotten, jobs_archived, keys_expired, marks_expired, fences_expired, archive_days_created or archive_days_dropped.",
	}
	drainDuration = Metric{
		"holdfast.drain.duration", Histogram, "s",
		[]string{attributeResult},
		"Time from when a worker stopped claiming until it had left; result is done or failed.",
	}
	oldestReadyAge = Metric{
		"holdfast.queue.oldest_ready_age", Gauge, "s",
		[]string{attributeQueue},
		"How long the job has been due that has waited for longest; 0 when none waits. All workers of a queue tell the same.",
	}
)

// Metrics lists what is measured.
func Metrics() []Metric {
	return []Metric{
		claimDuration, claimBatch, jobWait, handleDuration, handlersRunning, settleDuration, renewDuration, leaseRenewals, leaseLosses,
		fenceRefusals, deadLetters, wakes, ringBuckets, ringChanges, housekeepingDuration, housekeepingItems, drainDuration, oldestReadyAge,
	}
}

// The bounds of histograms.
var (
	statementBounds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 30}
	longBounds      = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200}
	batchBounds     = []float64{1, 2, 5, 10, 25, 50, 100, 200, 300, 400, 500, 1000}
)

// maker makes instruments and remembers what went wrong.
type maker struct {
	meter  metric.Meter
	failed []error
}

func (m *maker) note(of Metric, err error) {
	if err != nil {
		m.failed = append(m.failed, fmt.Errorf("make the instrument %s: %w", of.Name, err))
	}
}

func (m *maker) histogram(of Metric, bounds []float64) metric.Float64Histogram {
	made, err := m.meter.Float64Histogram(of.Name, metric.WithUnit(of.Unit), metric.WithDescription(of.Meaning), metric.WithExplicitBucketBoundaries(bounds...))
	m.note(of, err)
	return made
}

func (m *maker) counter(of Metric) metric.Int64Counter {
	made, err := m.meter.Int64Counter(of.Name, metric.WithUnit(of.Unit), metric.WithDescription(of.Meaning))
	m.note(of, err)
	return made
}

// watchedUpDownCounter is asked for its value when metrics are collected.
func (m *maker) watchedUpDownCounter(of Metric, observe metric.Int64Callback) {
	_, err := m.meter.Int64ObservableUpDownCounter(of.Name, metric.WithUnit(of.Unit), metric.WithDescription(of.Meaning), metric.WithInt64Callback(observe))
	m.note(of, err)
}

func (m *maker) upDownCounter(of Metric) metric.Int64UpDownCounter {
	made, err := m.meter.Int64UpDownCounter(of.Name, metric.WithUnit(of.Unit), metric.WithDescription(of.Meaning))
	m.note(of, err)
	return made
}
