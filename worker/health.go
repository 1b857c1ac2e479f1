package worker

import (
	"sync/atomic"
	"time"
)

// State is where a worker is in its life.
type State string

// The states of a worker.
const (
	StateJoining  State = "joining" // Before it could enter the registry, also after it was declared dead.
	StateWorking  State = "working"
	StateDraining State = "draining" // It claims no more.
	StateEnded    State = "ended"    // Run has returned.
)

// stalledAfter is how many of its longest turns a loop may take for one.
const stalledAfter = 3

// Health is how a worker is doing, for probes.
type Health struct {
	State    State
	WorkerID string // "" before it has joined.
	InFlight int    // Jobs that it holds: claimed, running, or waiting for their result to be recorded.
	Buckets  int    // Its own, in all of its queues.

	// Stalled are the loops that have not come round for three times the longest turn that they
	// can take, waits and timeouts of statements included. A database that does not answer stalls
	// none.
	Stalled []Stall
}

// Stall is a loop that has stopped.
type Stall struct {
	Loop   string        // claims, heartbeats, renewals or housekeeping.
	Silent time.Duration // Since it came round.
	Limit  time.Duration
}

// Health returns how the worker is doing. It asks no database.
func (w *Worker) Health() Health {
	if w.ended.Load() {
		return Health{State: StateEnded}
	}
	s := w.session.Load()
	if s == nil {
		return Health{State: StateJoining}
	}
	health := Health{State: StateWorking, WorkerID: s.id, InFlight: s.inFlight(), Buckets: s.members.buckets()}
	if s.draining.Load() {
		health.State = StateDraining
	}
	for _, each := range []*pulse{&s.claimPulse, &s.beatPulse, &s.renewPulse, &s.housePulse} {
		if silent := each.silence(s.lifetime()); silent > stalledAfter*each.longest {
			health.Stalled = append(health.Stalled, Stall{Loop: each.loop, Silent: silent, Limit: stalledAfter * each.longest})
		}
	}
	return health
}

// pulse tells whether a loop still comes round. It rests at first.
type pulse struct {
	loop    string
	longest time.Duration // The longest turn that it can take.
	ticked  atomic.Int64  // When it came round, as session.lifetime; 0: it rests.
}

// silence is how long ago the loop came round; 0 while it rests.
func (p *pulse) silence(now time.Duration) time.Duration {
	ticked := time.Duration(p.ticked.Load())
	if ticked == 0 {
		return 0
	}
	return now - ticked
}

// rest says that the loop waits for something that may take any time, or has ended.
func (p *pulse) rest() {
	p.ticked.Store(0)
}

// tick says that a loop has come round.
func (s *session) tick(p *pulse) {
	p.ticked.Store(int64(s.lifetime()))
}

// lifetime is how long ago the session began, and never 0.
func (s *session) lifetime() time.Duration {
	return s.Clock.Now().Sub(s.began) + 1
}

// startPulses says how long the turns of the loops can take, the longest pause and the longest
// statement, and starts those that come round by themselves. The loop of claims ticks before
// each pause and each statement.
func (s *session) startPulses() {
	statement := s.Lease / 3
	s.claimPulse.loop, s.claimPulse.longest = "claims", max(longestRetry, s.IdlePoll*4/3, statement)
	s.beatPulse.loop, s.beatPulse.longest = "heartbeats", s.Heartbeat*11/10+s.Heartbeat
	s.renewPulse.loop, s.renewPulse.longest = "renewals", s.renewalTurn()+statement
	s.housePulse.loop, s.housePulse.longest = "housekeeping", s.Housekeeping*11/10+s.Lease
	for _, each := range []*pulse{&s.beatPulse, &s.renewPulse, &s.housePulse} {
		s.tick(each)
	}
}
