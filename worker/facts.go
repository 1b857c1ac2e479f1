package worker

import (
	"encoding/json"
	"os"
	"time"
)

// facts are what a worker says of itself in the registry, at every heartbeat.
type facts struct {
	Version     string   `json:"version"`
	Host        string   `json:"host"`
	PID         int      `json:"pid"`
	Concurrency int      `json:"concurrency"`
	Affinity    Affinity `json:"affinity"`

	// What holdfast doctor compares with what it measures.
	Lease        float64 `json:"lease_seconds"`
	TTL          float64 `json:"ttl_seconds"`
	Housekeeping float64 `json:"housekeeping_seconds"`
	Connections  int     `json:"connections"` // At most, beside the one that listens and those of handlers.

	InFlight  int     `json:"in_flight"`
	Buckets   int     `json:"buckets"` // Its own, in all of its queues.
	Wake      string  `json:"wake"`    // listen or poll.
	ClaimP50  float64 `json:"claim_p50_ms"`
	ClaimP99  float64 `json:"claim_p99_ms"`
	WaitP50   float64 `json:"wait_p50_ms"`
	WaitP99   float64 `json:"wait_p99_ms"`
	HandleP50 float64 `json:"handle_p50_ms"`
	HandleP99 float64 `json:"handle_p99_ms"`
}

// facts are those that are known before the worker works.
func (c Config) facts() facts {
	host, _ := os.Hostname()
	return facts{
		Version:      c.Version,
		Host:         host,
		PID:          os.Getpid(),
		Concurrency:  c.Concurrency,
		Affinity:     c.Affinity,
		Lease:        c.Lease.Seconds(),
		TTL:          c.WorkerTTL.Seconds(),
		Housekeeping: c.Housekeeping.Seconds(),
		Connections:  c.Connections,
		Wake:         "poll",
	}
}

func (s *session) facts() json.RawMessage {
	known := s.Config.facts()
	known.InFlight = s.inFlight()
	known.Buckets = s.members.buckets()
	known.Wake = s.bell.mode()
	known.ClaimP50, known.ClaimP99 = milliseconds(s.claimTimes.percentiles())
	known.WaitP50, known.WaitP99 = milliseconds(s.waitTimes.percentiles())
	known.HandleP50, known.HandleP99 = milliseconds(s.handleTimes.percentiles())
	return known.encode()
}

func milliseconds(p50, p99 time.Duration) (p50ms, p99ms float64) {
	return float64(p50.Microseconds()) / 1000, float64(p99.Microseconds()) / 1000
}

func (f facts) encode() json.RawMessage {
	encoded, _ := json.Marshal(f) // Numbers and texts: it cannot fail.
	return encoded
}
