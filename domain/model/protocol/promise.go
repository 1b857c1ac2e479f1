package protocol

import "slices"

// Promise is one that a step can break.
type Promise uint8

// The promises, by their names in docs/guarantees.md.
const (
	kept Promise = iota
	OneHolder
	Fenced
	EndedStaysEnded
	ObservedCompleteOnce
	NeverTakenEarly
	InOrder
	TokensOnlyGrow
	AttemptsAreBounded
	LeavesNothingBehind
	RevivesNobody
	Kept
)

// sentences hold what broke, in the words of docs/guarantees.md, or of the statement's
// documentation in queries/.
var sentences = [...]string{
	kept:                 "nothing",
	OneHolder:            "the right of one worker to run a job, from the statement that took it until it is settled, released or reclaimed",
	Fenced:               "Only the current claim can renew or settle a job; anyone else changes nothing",
	EndedStaysEnded:      "An ended lease is not revived, because a reclaim may be reading it.",
	ObservedCompleteOnce: "A job becomes completed at most once.",
	NeverTakenEarly:      "No lease is reclaimed before its deadline by the database's clock",
	InOrder:              "the claims of one partition key never overlap, and follow `seq` among the jobs whose enqueue had committed",
	TokensOnlyGrow:       "A generation is never given to two claims, of any job, and a claim that began after another was settled or reclaimed has a larger one.",
	AttemptsAreBounded:   "never passes `max_attempts` between resets by an operator",
	LeavesNothingBehind:  "After a drain returns nil, the worker holds no job",
	RevivesNobody:        "It never changes the status, and it leaves the dead alone.",
	Kept:                 "A worker may be killed at any moment: its jobs are completed all the same, each once.",
}

func (p Promise) String() string { return sentences[p] }

// judgeToken looks at a token that is being drawn: every claim that has committed, whether it
// ended or not, has a smaller one.
func (m *moves) judgeToken(token uint8) Promise {
	for _, row := range m.now.jobs {
		if token <= row.token && m.Fault != TokenBeforeLock { // That one was drawn long ago.
			return TokensOnlyGrow
		}
	}
	return kept
}

// judgeClaim looks at a claim of a job that is about to become visible. The judges know nothing
// of what the claim saw: only what is committed, and what was promised.
func (m *moves) judgeClaim(s *state, w, j int) Promise {
	row, token := &s.jobs[j], s.txns[w].tokens[j]
	switch {
	case row.status != pending || row.available > 0:
		return OneHolder
	case token <= row.token || row.believer(token) != 0:
		return TokensOnlyGrow
	case m.Lane && (s.isLaneBusy() || s.txns[w].ahead&(bit(j)-1) != 0):
		// The unique index would stop an overlap. It is not modelled, so that it is not needed.
		return InOrder
	case row.attempts >= m.MaxAttempts[j]:
		return AttemptsAreBounded
	case s.workers[w].life == left:
		return LeavesNothingBehind
	}
	return kept
}

func judgeSettlement(row *job, w int, t *txn) Promise {
	switch {
	case row.status == completed && t.kind == completing:
		return ObservedCompleteOnce
	case row.status != processing || row.holder != uint8(w+1) || !slices.Contains(t.tokens[:], row.token):
		return Fenced
	case t.kind == renewing && row.deadline <= -t.age: // By now() of its transaction.
		return EndedStaysEnded
	}
	return kept
}

func judgeReclaim(row *job) Promise {
	if row.status != processing || row.deadline >= 0 {
		return NeverTakenEarly
	}
	return kept
}

func judgeWorker(before, after *state, w int) Promise {
	switch {
	case after.workers[w].registered < before.workers[w].registered:
		return RevivesNobody
	case after.workers[w].life == left && after.holdsAny(w):
		return LeavesNothingBehind
	}
	return kept
}
