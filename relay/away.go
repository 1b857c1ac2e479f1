package relay

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

const (
	// firstRest is how long a destination is left alone that did not say for how long. Each
	// further time doubles it, up to longestRest.
	firstRest   = 200 * time.Millisecond
	longestRest = 15 * time.Second

	// longestAsked bounds what a destination may ask for: an hour of it would look like a relay
	// that has died.
	longestAsked = 5 * time.Minute
)

// note keeps count of a batch, and closes the gate if the destination is away.
func (r *Relay) note(results []error) {
	after, away := r.status.note(results)
	if away == nil {
		return
	}
	r.gate.Close()
	r.log.Warn("the destination takes nothing: no job is claimed until it is back", "error", away, "after", after)
	// There is room: nothing is published while the gate is closed, and before it opens the loop
	// that opens it has taken what was here.
	r.shut <- min(after, longestAsked)
}

// gateLoop opens the gate again when the destination is back, until the context ends. A
// destination that was asked and is away again, before it took anything, rests longer.
func (r *Relay) gateLoop(ctx context.Context) {
	rest, taken := time.Duration(0), int64(-1)
	for {
		select {
		case asked := <-r.shut:
			if now := r.status.taken(); now != taken {
				rest, taken = 0, now
			}
			if rest = r.awaitReady(ctx, rest, asked); ctx.Err() != nil {
				return
			}
			r.status.opened()
			r.log.Info("the destination is tried again")
			r.gate.Open()
		case <-ctx.Done():
			return
		}
	}
}

// awaitReady waits as long as the destination asked for, or longer each time, and until it says
// that it is back. It returns the rest to go on from.
func (r *Relay) awaitReady(ctx context.Context, rest, asked time.Duration) time.Duration {
	for {
		rest = min(max(2*rest, firstRest), longestRest)
		wait := max(asked, rest-time.Duration(rand.Float64()*float64(rest)/2))
		asked = 0
		if !pause(ctx, wait) {
			return rest
		}
		call, cancel := context.WithTimeout(ctx, r.config.Timeout)
		err := r.publisher.Ready(call)
		cancel()
		if err == nil {
			return rest
		}
		r.status.failed(err)
		r.log.Debug("the destination is not back", "error", err)
	}
}

// pause waits, and tells whether the whole time passed before the context ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// awayOf returns the first result that says that the destination is away, and the longest time
// that it asks for.
func awayOf(results []error) (after time.Duration, away error) {
	for _, result := range results {
		var notNow *NotNowError
		if errors.As(result, &notNow) {
			after = max(after, notNow.After)
			if away == nil {
				away = result
			}
		}
	}
	return after, away
}
