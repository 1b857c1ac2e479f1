package telemetry

import (
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
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

// label is a combination of attributes. What is "" is left out.
type label struct {
	queue, kind string
	name, value string // One more.
}

// labelled is a label as instruments take it.
type labelled struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

// manyLabels is how many combinations there may be. Beyond, the kind is otherKind: a worker of
// any kind gets what producers come up with.
const (
	manyLabels = 1000
	otherKind  = "_other"
)

// labels keep every combination that was met, because to make one takes longer than to count.
type labels struct {
	made  sync.Map // label to *labelled.
	count atomic.Int64
}

func newLabels() *labels { return &labels{} }

func (l *labels) of(wanted label) *labelled {
	if known, found := l.made.Load(wanted); found {
		return known.(*labelled)
	}
	if wanted.kind != "" && wanted.kind != otherKind && l.count.Add(1) > manyLabels {
		wanted.kind = otherKind
		return l.of(wanted)
	}
	option := metric.WithAttributeSet(wanted.set())
	made, _ := l.made.LoadOrStore(wanted, &labelled{add: []metric.AddOption{option}, record: []metric.RecordOption{option}})
	return made.(*labelled)
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
