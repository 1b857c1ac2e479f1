package model

import (
	"slices"
	"sync"
	"time"
)

// Clock is a worker.Clock that stands still until it is advanced. It is safe for concurrent
// use.
type Clock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*timer // By deadline; of two with the same, the older first.
}

type timer struct {
	deadline time.Time
	fired    chan time.Time
}

// NewClock returns a clock that shows the time given.
func NewClock(now time.Time) *Clock {
	return &Clock{now: now}
}

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// NewTimer returns a channel that receives once, when the clock has advanced by the
// duration, and a function that frees the timer. A duration of nothing or less fires at once.
func (c *Clock) NewTimer(d time.Duration) (fired <-chan time.Time, stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Room for the one value: Advance must not wait for the receiver.
	t := &timer{deadline: c.now.Add(d), fired: make(chan time.Time, 1)}
	if d <= 0 {
		t.fired <- c.now
		return t.fired, func() {}
	}
	at := slices.IndexFunc(c.timers, func(other *timer) bool { return other.deadline.After(t.deadline) })
	if at < 0 {
		at = len(c.timers)
	}
	c.timers = slices.Insert(c.timers, at, t)
	return t.fired, func() { c.free(t) }
}

func (c *Clock) free(t *timer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timers = slices.DeleteFunc(c.timers, func(other *timer) bool { return other == t })
}

// Next tells how long it is to the next timer; false without one. A simulator advances by it.
func (c *Clock) Next() (d time.Duration, some bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers) == 0 {
		return 0, false
	}
	return c.timers[0].deadline.Sub(c.now), true
}

// Advance moves the clock on and fires the timers that come due, in the order of their
// deadlines, each with its deadline as the time. It does not wait for those who receive: a
// timer that they start in answer counts from wherever the clock is by then. Time does not
// go back: a negative duration panics.
func (c *Clock) Advance(d time.Duration) {
	if d < 0 {
		panic("model: a clock cannot be turned back")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	target := c.now.Add(d)
	for len(c.timers) > 0 && !c.timers[0].deadline.After(target) {
		next := c.timers[0]
		c.timers = slices.Delete(c.timers, 0, 1)
		c.now = next.deadline
		next.fired <- c.now
	}
	c.now = target
}
