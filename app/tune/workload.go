// Package tune works out from a description of the work which settings suit it, and says why.
// It decides nothing that a worker does not check: the numbers are those of worker.Config.
package tune

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// Workload describes the work of one queue and those who do it.
type Workload struct {
	Rate      float64 `json:"rate"`        // Jobs enqueued in a second.
	P50       Seconds `json:"p50_seconds"` // What handlers take: half of them no longer than this,
	P99       Seconds `json:"p99_seconds"` // and 99 in 100 no longer than this.
	Compute   bool    `json:"compute"`     // Handlers use the processor. Else they wait, for most of their time.
	Held      int     `json:"held_connections"`
	Payload   int     `json:"payload_bytes"`
	Ordered   bool    `json:"ordered"`
	HotShare  float64 `json:"hot_share"` // The share of jobs that have the busiest key.
	Workers   int     `json:"workers"`   // Processes.
	Cores     int     `json:"cores"`     // That each process has.
	MostSlots int     `json:"most_slots"`

	// Connections is how many the server, or the pooler before it, has for all the workers.
	Connections int `json:"connections"`
}

// Seconds is a duration that is a number of seconds in JSON.
type Seconds time.Duration

// MarshalJSON writes the number of seconds.
func (s Seconds) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(s).Seconds()) }

// UnmarshalJSON reads it.
func (s *Seconds) UnmarshalJSON(text []byte) error {
	var seconds float64
	err := json.Unmarshal(text, &seconds)
	*s = Seconds(math.Round(seconds * float64(time.Second)))
	return err
}

func (s Seconds) String() string { return short(time.Duration(s)) }

// What a description may say.
const (
	DefaultPayload     = 512
	DefaultMostSlots   = 256 // Of a process: the most that the bench's scenario slots has measured.
	DefaultConnections = 97  // A server with its defaults has 100, and reserves 3.

	mostRate     = 1_000_000
	longestTime  = 7 * 24 * time.Hour
	mostWorkers  = 10_000
	mostCores    = 4096
	mostAtOnce   = 100_000 // Slots, and connections.
	mostHeldEach = 100
)

// Check refuses what describes no work: a domain.InvalidError. Work that is too much for its
// workers is not refused: Recommend says what it lacks.
func (w Workload) Check() error {
	for _, number := range []struct {
		name        string
		value       float64
		least, most float64
	}{
		{"rate", w.Rate, math.SmallestNonzeroFloat64, mostRate},
		{"workers", float64(w.Workers), 1, mostWorkers},
		{"cores", float64(w.Cores), 1, mostCores},
		{"max-connections", float64(w.Connections), 1, mostAtOnce},
		{"max-concurrency", float64(w.MostSlots), 1, mostAtOnce},
		{"held-connections", float64(w.Held), 0, mostHeldEach},
		{"payload", float64(w.Payload), 0, 1 << 30},
		{"hot-key", w.HotShare, 0, 1},
	} {
		if !(number.value >= number.least && number.value <= number.most) { // Not a number is neither.
			least := "more than 0"
			if number.least != math.SmallestNonzeroFloat64 {
				least = fmt.Sprintf("at least %.0f", number.least)
			}
			return &domain.InvalidError{Field: "--" + number.name, Reason: fmt.Sprintf("%v is not %s and at most %.0f", number.value, least, number.most)}
		}
	}
	switch p50, p99 := time.Duration(w.P50), time.Duration(w.P99); {
	case p50 <= 0 || p50 > longestTime:
		return &domain.InvalidError{Field: "--p50", Reason: fmt.Sprintf("%s is not more than 0 and at most %s", p50, longestTime)}
	case p99 < p50 || p99 > longestTime:
		return &domain.InvalidError{Field: "--p99", Reason: fmt.Sprintf("%s is not at least the p50 (%s) and at most %s", p99, p50, longestTime)}
	}
	return nil
}

// The spread of a normal distribution between its median and its 99th percentile, and the
// ratio of the two at which a log-normal one has the smallest mean for its p99.
const z99 = 2.326

var widestSpread = math.Exp(z99 * z99)

// mean is what a handler takes on average, if the times are log-normal: p50 × e^(σ²/2) with
// σ = ln(p99/p50)/2.326. Beyond a p99 of 224 times the p50 it stays at a fifteenth of the p99,
// because the formula would have quicker handlers take longer.
func (w Workload) mean() time.Duration {
	p99 := float64(w.P99)
	p50 := max(float64(w.P50), p99/widestSpread)
	sigma := math.Log(p99/p50) / z99
	return time.Duration(math.Ceil(p50 * math.Exp(sigma*sigma/2)))
}

// busy is how many handlers run at once on average, on all workers (Little's law).
func (w Workload) busy() float64 { return w.Rate * w.mean().Seconds() }
