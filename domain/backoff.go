package domain

import (
	"math"
	"time"
)

const (
	backoffLimit  = time.Hour
	backoffJitter = 0.2
)

// Backoff returns how long a job waits after its attempts-th claim ended badly: 2^attempts
// seconds, one hour at most, give or take 20 percent. random, in [0, 1), places the wait
// within that range. The SQL function holdfast.backoff follows the same rule.
func Backoff(attempts int, random float64) time.Duration {
	// 2^12 s is over the limit already; the cap keeps the power from overflowing.
	wait := math.Min(math.Pow(2, float64(min(max(attempts, 0), 12))), backoffLimit.Seconds())
	return time.Duration(wait * (1 - backoffJitter + 2*backoffJitter*random) * float64(time.Second))
}
