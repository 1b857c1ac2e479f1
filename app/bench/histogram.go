package bench

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latencies from 1 µs to an hour, to three digits.
const (
	leastLatency  = 1
	mostLatency   = int64(time.Hour / time.Microsecond)
	latencyDigits = 3
)

// histogram counts latencies. It is safe for concurrent use.
type histogram struct {
	mutex  sync.Mutex
	counts *hdrhistogram.Histogram
}

func newHistogram() *histogram {
	return &histogram{counts: hdrhistogram.New(leastLatency, mostLatency, latencyDigits)}
}

// record takes what is out of bounds for the bound.
func (h *histogram) record(d time.Duration) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	_ = h.counts.RecordValue(min(max(d.Microseconds(), leastLatency), mostLatency)) // Within bounds: it cannot fail.
}

func (h *histogram) merge(other *histogram) {
	h.counts.Merge(other.counts)
}

// MarshalText writes the histogram in the format that all implementations of HdrHistogram read.
func (h *histogram) MarshalText() ([]byte, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.counts.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
}

// UnmarshalText reads what MarshalText wrote.
func (h *histogram) UnmarshalText(text []byte) (err error) {
	h.counts, err = hdrhistogram.Decode(text)
	return err
}

// figures are the percentiles that a person asks for, in milliseconds; none of nothing.
func (h *histogram) figures(name string) []Figure {
	if h.counts.TotalCount() == 0 {
		return nil
	}
	milliseconds := func(microseconds int64) float64 { return float64(microseconds) / 1000 }
	return []Figure{
		{name + " p50", "ms", milliseconds(h.counts.ValueAtQuantile(50))},
		{name + " p95", "ms", milliseconds(h.counts.ValueAtQuantile(95))},
		{name + " p99", "ms", milliseconds(h.counts.ValueAtQuantile(99))},
		{name + " max", "ms", milliseconds(h.counts.Max())},
	}
}
