package telemetry

import (
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-pg/holdfast/domain"
)

// The attributes. A partition key is none: it has as many values as there are orders.
const (
	attributeQueue   = "queue"
	attributeKind    = "kind"
	attributeOutcome = "outcome"
	attributeResult  = "result"
	attributeReason  = "reason"
	attributeBy      = "by"
	attributeStatus  = "status"
	attributeSource  = "source"
	attributeTask    = "task"
)

// manyKinds is how many kinds are told apart. Those that come later are otherKind: a worker of any
// kind gets what producers come up with.
const (
	manyKinds = 200
	otherKind = "_other"
)

// process begins the names of spans.
const process = "process "

// label is a combination of attributes. What is "" is left out.
type label struct {
	queue, kind string
	name, value string // One more.
}

func (l label) set() attribute.Set {
	var all []attribute.KeyValue
	for _, each := range [][2]string{{attributeQueue, l.queue}, {attributeKind, l.kind}, {l.name, l.value}} {
		if each[1] != "" {
			all = append(all, attribute.String(each[0], each[1]))
		}
	}
	return attribute.NewSet(all...)
}

// labelled is a label as instruments take it.
type labelled struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

func (l label) ready() labelled {
	option := metric.WithAttributeSet(l.set())
	return labelled{add: []metric.AddOption{option}, record: []metric.RecordOption{option}}
}

// kindLabels are those that each job of a queue and a kind needs, and how many run.
type kindLabels struct {
	labelled

	label    label
	outcomes map[domain.Verdict]labelled
	name     string // Of spans.
	span     []trace.SpanStartOption
	running  atomic.Int64
}

// spanName names the spans of a kind. Those that are not told apart by their labels are by their names.
func (k *kindLabels) spanName(kind string) string {
	if k.label.kind != kind {
		return process + kind
	}
	return k.name
}

// with adds an attribute.
func (k *kindLabels) with(name, value string) label {
	return label{queue: k.label.queue, kind: k.label.kind, name: name, value: value}
}

// labels keep every combination that was met: to make one takes longer than to count.
type labels struct {
	made  sync.Map // label to labelled.
	kinds sync.Map // label to *kindLabels.
	count atomic.Int64
}

func (l *labels) of(wanted label) labelled {
	known, found := l.made.Load(wanted)
	if !found {
		known, _ = l.made.LoadOrStore(wanted, wanted.ready())
	}
	return known.(labelled)
}

// kind returns the labels of a kind. A kind that was told apart once always is.
func (l *labels) kind(queue, kind string) *kindLabels {
	wanted := label{queue: queue, kind: kind}
	if known, found := l.kinds.Load(wanted); found {
		return known.(*kindLabels)
	}
	if kind != otherKind && l.count.Add(1) > manyKinds {
		return l.kind(queue, otherKind)
	}
	fresh := &kindLabels{labelled: wanted.ready(), label: wanted, outcomes: map[domain.Verdict]labelled{}, name: process + kind, span: spanOptions(queue)}
	for _, verdict := range []domain.Verdict{domain.Complete, domain.Retry, domain.Fail, domain.Release} {
		fresh.outcomes[verdict] = fresh.with(attributeOutcome, verdict.String()).ready()
	}
	known, _ := l.kinds.LoadOrStore(wanted, fresh)
	return known.(*kindLabels)
}

// eachKind calls a function for every kind that was met.
func (l *labels) eachKind(call func(*kindLabels)) {
	l.kinds.Range(func(_, known any) bool {
		call(known.(*kindLabels))
		return true
	})
}
