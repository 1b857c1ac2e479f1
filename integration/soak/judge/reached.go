package judge

// state is something that a run must have gone through at least once: otherwise it shows
// nothing of how it ends.
type state int

const (
	staleSettlement state = iota
	staleEffect
	leaseReclaimed
	renewalHeld
	cutShort
	enqueueCommitted
	enqueueNot
	settledBefore
	ranTwice
	keyOfTwo
	laneWaited
	diedSpent
	failedForGood
	drainEnded
	redrivenDone
	crashed
	cutBefore
	cutAfter
	stateCount
)

// stateNames are the names of the states in the report.
var stateNames = [stateCount]string{
	staleSettlement:  "a stale settlement was refused",
	staleEffect:      "a stale effect was refused",
	leaseReclaimed:   "a lease ended and was reclaimed",
	renewalHeld:      "a renewed claim outlived its first deadline",
	cutShort:         "a handler was cut short by its worker",
	enqueueCommitted: "an enqueue without an answer had committed",
	enqueueNot:       "an enqueue without an answer had not committed",
	settledBefore:    "a settlement without an answer had taken effect and was repeated with success",
	ranTwice:         "a job was executed twice",
	keyOfTwo:         "two processes enqueued one key",
	laneWaited:       "a lane waited for the retry of its head",
	diedSpent:        "a job was dead-lettered with its attempts spent",
	failedForGood:    "a job failed by its handler's word",
	drainEnded:       "a drain released or finished jobs",
	redrivenDone:     "a redriven job was completed",
	crashed:          "Postgres crashed and recovered",
	cutBefore:        "a connection was cut before a commit",
	cutAfter:         "a connection was cut after a commit",
}

func (j *judge) reach(s state) { j.reached[s]++ }

// reachByMove counts what a change shows, before it is taken down.
func (j *judge) reachByMove(m *move) {
	job := m.job
	switch m.kind {
	case claimed:
		if job.laneWaits {
			j.reach(laneWaited)
			job.laneWaits = false
		}
	case died:
		j.reach(diedSpent)
	case gaveUp:
		j.reach(failedForGood)
	case finished:
		if job.redrives > 0 {
			j.reach(redrivenDone)
		}
	default:
	}
	if !m.kind.ends() {
		return
	}
	if job.firstLease < m.tx.commit && m.tx.commit < job.lease {
		j.reach(renewalHeld)
	}
	if d := j.holders[job.holder].drain; d != nil && d.begin <= m.tx.commit && m.tx.commit <= d.end {
		d.helped = true
	}
	if sent, repeated := j.repeats[job.generation]; repeated && m.tx.commit < sent && m.claim.unsure&m.claim.again&m.kind.verdict() != 0 {
		j.reach(settledBefore)
	}
}

// reachAtEnd counts what only both sides together show.
func (j *judge) reachAtEnd() {
	for _, c := range j.allClaims {
		if c.logged && c.reclaimed() && !c.early {
			j.reach(leaseReclaimed)
		}
	}
	for job := range j.jobs.all {
		if job.runs > 1 {
			j.reach(ranTwice)
		}
	}
	for a := range j.enqueues.all {
		switch {
		case a.outcome != saidAmbiguous:
		case j.seen[a.marker]:
			j.reach(enqueueCommitted)
		default:
			j.reach(enqueueNot)
		}
	}
}
