package telemetry

import (
	"maps"
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
	made sync.Map // label to labelled.

	mutex sync.Mutex
	kinds atomic.Pointer[map[kindName]*kindLabels] // A new map for each kind: two look-ups a job are quick.
}

type kindName struct{ queue, kind string }

func (l *labels) of(wanted label) labelled {
	known, found := l.made.Load(wanted)
	if !found {
		known, _ = l.made.LoadOrStore(wanted, wanted.ready())
	}
	return known.(labelled)
}

// kind returns the labels of a kind. A kind that was told apart once always is.
func (l *labels) kind(queue, kind string) *kindLabels {
	name := kindName{queue, kind}
	if known := l.known()[name]; known != nil {
		return known
	}
	return l.add(name)
}

func (l *labels) known() map[kindName]*kindLabels {
	if known := l.kinds.Load(); known != nil {
		return *known
	}
	return nil
}

func (l *labels) add(name kindName) *kindLabels {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	known := l.known()
	if len(known) >= manyKinds && known[name] == nil {
		name.kind = otherKind
	}
	if found := known[name]; found != nil {
		return found
	}
	more := map[kindName]*kindLabels{name: newKindLabels(name)}
	maps.Copy(more, known)
	l.kinds.Store(&more)
	return more[name]
}

func newKindLabels(name kindName) *kindLabels {
	wanted := label{queue: name.queue, kind: name.kind}
	fresh := &kindLabels{
		labelled: wanted.ready(),
		label:    wanted,
		outcomes: map[domain.Verdict]labelled{},
		name:     process + name.kind,
		span:     spanOptions(name.queue),
	}
	for _, verdict := range []domain.Verdict{domain.Complete, domain.Retry, domain.Fail, domain.Release} {
		fresh.outcomes[verdict] = fresh.with(attributeOutcome, verdict.String()).ready()
	}
	return fresh
}

// eachKind calls a function for every kind that was met.
func (l *labels) eachKind(call func(*kindLabels)) {
	for _, kind := range l.known() {
		call(kind)
	}
}
