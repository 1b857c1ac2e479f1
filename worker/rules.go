package worker

import "time"

// The numbers behind the relations of a Config, for whoever advises on one.
const (
	RenewalsPerLease = 3  // A lease is renewed three times before it ends, so that one renewal may get lost.
	MarginsPerLease  = 10 // The tenth of a lease that is its margin.
	BeatsPerTTL      = 3  // A worker counts as dead when it has missed three heartbeats.
	StockPerBatch    = 4  // So many times the jobs of a claim may wait in the worker for a slot.
	FirstBatch       = firstBatch
	StrayAfter       = strayAfter
	SlowClaim        = slowClaim
)

const (
	// LeaseTimes is how many times as long as slow handlers a lease lasts, while that is short.
	LeaseTimes = 3

	// LongestLease is the longest lease that handlers ask for. Those that take longer live on
	// renewals: a lease is also the time for which a dead worker keeps its jobs.
	LongestLease = 5 * time.Minute

	leaseStep = 10 * time.Second
)

// IsEnoughLease tells whether a lease is as long as handlers ask for of which 99 in 100 take no
// longer than p99: three times as long, or LongestLease.
func IsEnoughLease(lease, p99 time.Duration) bool {
	return lease >= LongestLease || p99 <= lease/LeaseTimes
}

// EnoughLease is the shortest lease in steps of 10 s that is enough.
func EnoughLease(p99 time.Duration) time.Duration {
	if p99 > LongestLease/LeaseTimes {
		return LongestLease
	}
	return (LeaseTimes*p99 + leaseStep - 1) / leaseStep * leaseStep
}
