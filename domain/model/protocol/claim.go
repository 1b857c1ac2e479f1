package protocol

import "math/bits"

// claim plays the next step of a worker's claim: ClaimJobs is snapshot, then for each row lock
// and recheck, token, and the commit. A claim of lanes has its lock in front of the snapshot.
func (m *moves) claim(w int) {
	switch t := &m.now.txns[w]; {
	case t.kind == nothing && m.now.workers[w].life == running:
		m.beginClaim(w)
	case t.kind == nothing:
	case !t.chosen:
		m.chooseHead(w)
	case m.Fault == LaneLockWithChoice && !t.bucket:
		m.lockBucketLate(w)
	case t.locked != t.drawn:
		m.drawToken(w)
	default:
		if t.seen != 0 && (t.locked == 0 || !m.takesOne()) {
			m.lockCandidate(w)
		}
		if t.locked != 0 { // The batch may be full before all candidates were tried.
			m.commitClaim(w)
		}
	}
}

// takesOne tells whether a claim takes one job of a key.
func (m *moves) takesOne() bool { return m.Lane && m.Fault != LaneTakesSeveral }

// beginClaim takes the snapshot of a claim, or the bucket's lock in front of it. A claim that
// sees nothing is not played.
func (m *moves) beginClaim(w int) {
	next := m.now
	t := &next.txns[w]
	t.kind, t.chosen = claiming, true
	if m.Lane {
		t.kind, t.ahead = claimingLane, m.now.unfinished()
	}
	what := step{stage: sees, who: int8(w), job: -1}
	switch {
	case !m.Lane:
		t.seen = m.now.filter(func(j int) bool { return m.now.isDue(j, 0) })
	case m.Fault == LaneGuardInSnapshot || m.Fault == LaneTakesSeveral:
		t.seen = m.now.filter(func(j int) bool { return m.now.isDue(j, 0) && !m.now.isLaneBusy() })
	case m.Fault == LaneLockWithChoice:
		t.seen = m.now.head(0)
	default:
		t.chosen, t.bucket = false, true
		what.kind, what.stage = lockingLane, locks
		if m.now.hasWaiting() && !m.now.isBucketLocked() {
			m.emit(what, next, kept)
		}
		return
	}
	if m.Fault == TokenBeforeLock {
		next.drawForAll(t)
	}
	if what.kind, what.set = t.kind, t.seen; t.seen != 0 {
		m.emit(what, next, kept)
	}
}

// drawForAll gives a claim its tokens before it has locks.
func (s *state) drawForAll(t *txn) {
	for j := range s.jobs {
		if t.seen&bit(j) != 0 {
			s.sequence++
			t.tokens[j] = s.sequence
		}
	}
}

// chooseHead is the snapshot of ClaimLanes, newer than the bucket's lock.
func (m *moves) chooseHead(w int) {
	next := m.now
	t := &next.txns[w]
	t.chosen, t.seen = true, m.now.head(t.age)
	if t.seen == 0 {
		*t = txn{}
	}
	m.emit(step{kind: claimingLane, stage: sees, who: int8(w), job: -1, set: t.seen}, next, kept)
}

func (m *moves) lockBucketLate(w int) {
	next := m.now
	t := &next.txns[w]
	what := step{kind: lockingLane, stage: locks, who: int8(w), job: -1}
	if t.bucket = true; m.now.isBucketLocked() {
		what.stage, *t = skips, txn{}
	}
	m.emit(what, next, kept)
}

// lockCandidate comes to the next candidate: SKIP LOCKED, then the conditions on the newest
// version of the row, which is what READ COMMITTED rechecks. It does not look at siblings again.
func (m *moves) lockCandidate(w int) {
	next := m.now
	t := &next.txns[w]
	j := bits.TrailingZeros8(t.seen)
	taken := !m.now.isLocked(j) && m.now.isDue(j, t.age)
	if m.Fault == ClaimWithoutRecheck {
		if m.now.isLocked(j) {
			return // An UPDATE by id waits.
		}
		taken = !m.now.jobs[j].isTerminal()
	}
	m.comeTo(w, j, taken, next)
}

// comeTo locks a job for a transaction, or passes it by; one that is left with nothing ends.
func (m *moves) comeTo(i, j int, taken bool, next state) {
	t := &next.txns[i]
	what := step{kind: t.kind, stage: skips, who: whose(i), job: int8(j)}
	t.seen &^= bit(j)
	if taken {
		what.stage = locks
		t.locked |= bit(j)
	} else if t.seen == 0 && t.locked == 0 {
		*t = txn{}
	}
	m.emit(what, next, kept)
}

// drawToken takes the next number of the sequence for a row that is locked. A rollback would not
// give it back.
func (m *moves) drawToken(w int) {
	next := m.now
	t := &next.txns[w]
	j := bits.TrailingZeros8(t.locked &^ t.drawn)
	t.drawn |= bit(j)
	switch m.Fault {
	case TokenBeforeLock: // It has one.
	case TokenPerJob:
		t.tokens[j] = next.jobs[j].token + 1
	default:
		next.sequence++
		t.tokens[j] = next.sequence
	}
	what := step{kind: t.kind, stage: draws, who: int8(w), job: int8(j), token: t.tokens[j]}
	m.emit(what, next, m.judgeToken(t.tokens[j]))
}

func (m *moves) commitClaim(w int) {
	next := m.now
	t := m.now.txns[w]
	broken := kept
	for j := range next.jobs {
		if t.drawn&bit(j) == 0 {
			continue
		}
		if broken == kept {
			broken = m.judgeClaim(&next, w, j)
		}
		row := &next.jobs[j]
		row.status, row.holder, row.token = processing, uint8(w+1), t.tokens[j]
		row.deadline, row.available = leaseTicks-t.age, 0
		row.attempts++
		row.believed = row.believed&^(3<<(2*row.token)) | uint32(w+1)<<(2*row.token)
	}
	next.txns[w] = txn{}
	m.emit(step{kind: t.kind, stage: commits, who: int8(w), job: -1, set: t.drawn}, next, broken)
}

func (s *state) hasWaiting() bool {
	return s.filter(func(j int) bool { return s.jobs[j].status == pending }) != 0
}

// unfinished returns the jobs of the lane that are enqueued and not terminal.
func (s *state) unfinished() uint8 {
	return s.filter(func(j int) bool { return s.jobs[j].status == pending || s.jobs[j].status == processing })
}

func (s *state) isLaneBusy() bool {
	return s.filter(func(j int) bool { return s.jobs[j].status == processing }) != 0
}

func (s *state) isBucketLocked() bool {
	for w := range maxWorkers {
		if s.txns[w].bucket {
			return true
		}
	}
	return false
}

// head returns the first waiting job of the lane, by seq, if it is due and the lane is free.
func (s *state) head(age int8) uint8 {
	waiting := s.filter(func(j int) bool { return s.jobs[j].status == pending })
	first := waiting & -waiting
	if first == 0 || s.isLaneBusy() || !s.isDue(bits.TrailingZeros8(first), age) {
		return 0
	}
	return first
}
