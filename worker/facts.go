package worker

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"time"
)

// Facts are what a worker says of itself in the registry when it joins and at every
// heartbeat. What another version does not say is zero.
type Facts struct {
	Version     string   `json:"version"`
	Host        string   `json:"host"`
	PID         int      `json:"pid"`
	Concurrency int      `json:"concurrency"`
	Affinity    Affinity `json:"affinity"`
	Kinds       []string `json:"kinds,omitempty"` // Those it runs, ascending; left out when it runs every kind, or more than can be said.

	Lease        float64 `json:"lease_seconds"`
	WorkerTTL    float64 `json:"worker_ttl_seconds"`   // How long it goes by workers that were not seen.
	Housekeeping float64 `json:"housekeeping_seconds"` // How often it reclaims ended leases.
	Connections  int     `json:"connections"`          // At most, beside the one that listens and those of handlers.

	InFlight  int     `json:"in_flight"` // Jobs that it has claimed and not settled.
	Buckets   int     `json:"buckets"`   // Its own, in all of its queues.
	Wake      string  `json:"wake"`      // listen or poll.
	ClaimP50  float64 `json:"claim_p50_ms"`
	ClaimP99  float64 `json:"claim_p99_ms"`
	WaitP50   float64 `json:"wait_p50_ms"`
	WaitP99   float64 `json:"wait_p99_ms"`
	HandleP50 float64 `json:"handle_p50_ms"`
	HandleP99 float64 `json:"handle_p99_ms"`

	More json.RawMessage `json:"more,omitempty"` // What Config.Says adds.
}

// maxKindsSaid bounds the names of kinds in the registry, in bytes: all of it is written
// anew at every heartbeat, and stays in its page below 2 KB.
const maxKindsSaid = 1000

// ReadFacts reads what a worker says of itself. What is no JSON object says nothing.
func ReadFacts(metadata json.RawMessage) (said Facts) {
	_ = json.Unmarshal(metadata, &said) // A field of another type stays zero, and the others are read.
	return said
}

// Runs tells whether the worker may run jobs of a kind: for all it says, if it does not say.
func (f Facts) Runs(kind string) bool {
	return len(f.Kinds) == 0 || slices.Contains(f.Kinds, kind)
}

// facts are those that are known before the worker works.
func (c Config) facts(handlers map[string]Handler) Facts {
	host, _ := os.Hostname()
	return Facts{
		Version:      c.Version,
		Host:         host,
		PID:          os.Getpid(),
		Concurrency:  c.Concurrency,
		Affinity:     c.Affinity,
		Kinds:        kindsOf(handlers),
		Lease:        c.Lease.Seconds(),
		WorkerTTL:    c.WorkerTTL.Seconds(),
		Housekeeping: c.Housekeeping.Seconds(),
		Connections:  c.Connections,
		Wake:         "poll",
	}
}

// kindsOf lists the kinds that have a handler; nil when one takes all the others, or when
// they are more than the registry is told.
func kindsOf(handlers map[string]Handler) []string {
	if _, rest := handlers[""]; rest {
		return nil
	}
	length := 0
	for kind := range handlers {
		length += len(kind)
	}
	if length > maxKindsSaid {
		return nil
	}
	return slices.Sorted(maps.Keys(handlers))
}

func (s *session) facts() json.RawMessage {
	known := s.Config.facts(s.handlers)
	known.InFlight = s.inFlight()
	known.Buckets = s.members.buckets()
	known.Wake = s.bell.mode()
	known.ClaimP50, known.ClaimP99 = milliseconds(s.claimTimes.percentiles())
	known.WaitP50, known.WaitP99 = milliseconds(s.waitTimes.percentiles())
	known.HandleP50, known.HandleP99 = milliseconds(s.handleTimes.percentiles())
	known.More = s.more()
	return known.encode()
}

// more is what the program adds, if it is JSON.
func (s *session) more() json.RawMessage {
	if s.Says == nil {
		return nil
	}
	encoded, err := json.Marshal(s.Says())
	if err != nil {
		s.log.Warn("what the worker says of itself cannot be written as JSON", "error", err)
		return nil
	}
	return encoded
}

func milliseconds(p50, p99 time.Duration) (p50ms, p99ms float64) {
	return float64(p50.Microseconds()) / 1000, float64(p99.Microseconds()) / 1000
}

func (f Facts) encode() json.RawMessage {
	encoded, _ := json.Marshal(f) // Numbers and texts: it cannot fail.
	return encoded
}
