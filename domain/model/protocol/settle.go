package protocol

import "math/bits"

// verdicts are what a worker does about a claim that it believes to have.
var verdicts = []kind{renewing, completing, retrying, failing, releasing}

// settle plays the next step of a worker's renewals and settlements: the snapshot that compares
// the fence, the lock of the row for which it waits, with the fence compared again, and the
// commit. A handler's transaction (LockClaim) holds the lock until it completes, the same.
func (m *moves) settle(w int) {
	i := settlement(w)
	t := m.now.txns[i]
	switch {
	case t.kind == nothing && m.now.workers[w].life != crashed:
		for j := range m.now.jobs {
			m.beginSettling(w, j)
		}
	case t.kind == nothing:
	case t.locked == 0:
		j := bits.TrailingZeros8(t.seen)
		if !m.now.isLocked(j) {
			m.comeTo(i, j, m.passesFence(w, j, t.tokens[j], t.kind, t.age), m.now)
		}
	default:
		m.commitSettlement(w)
	}
}

// beginSettling acts on every claim of the job that the worker was ever given: it may have been
// paused since, lost the reply to a settlement, or be confused.
func (m *moves) beginSettling(w, j int) {
	for token := uint8(1); m.now.jobs[j].believed>>(2*token) != 0; token++ {
		if m.now.jobs[j].believer(token) != uint8(w+1) {
			continue
		}
		for _, verdict := range verdicts {
			if verdict == releasing && m.now.jobs[j].released == m.Releases || verdict == failing && m.Redrives == 0 {
				continue // Without redrives, a failed job is as a completed one.
			}
			next := m.now
			what := step{kind: verdict, stage: refused, who: int8(w), job: int8(j), token: token}
			if m.passesFence(w, j, token, verdict, 0) {
				what.stage = sees
				t := &next.txns[settlement(w)]
				t.kind, t.chosen, t.seen, t.tokens[j] = verdict, true, bit(j), token
			}
			m.emit(what, next, kept)
		}
	}
}

// passesFence compares the fence with the newest version of the row.
func (m *moves) passesFence(w, j int, token uint8, verdict kind, age int8) bool {
	row := &m.now.jobs[j]
	return row.holder == uint8(w+1) &&
		(row.token == token || m.Fault == SettleByWorker) &&
		(verdict != renewing || row.deadline > -age || m.Fault == RenewsEnded)
}

func (m *moves) commitSettlement(w int) {
	next := m.now
	t := m.now.txns[settlement(w)]
	j := bits.TrailingZeros8(t.locked)
	row := &next.jobs[j]
	broken := judgeSettlement(row, w, &t)
	switch t.kind {
	case renewing:
		row.deadline = leaseTicks - t.age
	case completing:
		holder := row.holder
		row.free(completed, 0)
		if m.Fault == SettleKeepsHolder {
			row.holder = holder
		}
	case retrying:
		m.putBack(row, j, t.age)
	case failing:
		row.free(failed, 0)
	default:
		row.attempts--
		row.released++
		row.free(pending, -t.age)
	}
	next.txns[settlement(w)] = txn{}
	next.forgetEnded()
	m.emit(step{kind: t.kind, stage: commits, who: int8(w), job: int8(j), token: t.tokens[j]}, next, broken)
}

// putBack ends a claim without success: the job waits for its backoff, or is dead.
func (m *moves) putBack(row *job, j int, age int8) {
	if row.attempts < m.MaxAttempts[j] {
		row.free(pending, backoffTicks-age)
	} else {
		row.free(deadLetter, 0)
	}
}

// keep plays the next step of a housekeeper: ReclaimExpiredLeases is snapshot, then for each row
// lock and recheck, and the commit. It looks at all claims: where a walk begins (OldestClaim) is
// a hint.
func (m *moves) keep(k int) {
	i := reclaim(k)
	switch t := m.now.txns[i]; {
	case t.kind == nothing:
		next := m.now
		t := &next.txns[i]
		t.kind, t.chosen = reclaiming, true
		t.seen = m.now.filter(func(j int) bool {
			return m.now.isExpired(j, 0) && (m.Fault != ReclaimLeavesLastAttempt || m.now.jobs[j].attempts < m.MaxAttempts[j])
		})
		if t.seen != 0 {
			m.emit(step{kind: reclaiming, stage: sees, who: int8(k), job: -1, set: t.seen}, next, kept)
		}
	case t.seen != 0:
		j := bits.TrailingZeros8(t.seen)
		taken := !m.now.isLocked(j) && m.now.isExpired(j, t.age)
		if m.Fault == ReclaimByID {
			if m.now.isLocked(j) {
				return // An UPDATE by id waits.
			}
			taken = m.now.jobs[j].status == processing
		}
		m.comeTo(i, j, taken, m.now)
	default:
		m.commitReclaim(k)
	}
}

func (m *moves) commitReclaim(k int) {
	next := m.now
	t := m.now.txns[reclaim(k)]
	broken := kept
	for j := range next.jobs {
		if t.locked&bit(j) == 0 {
			continue
		}
		row := &next.jobs[j]
		if broken == kept {
			broken = judgeReclaim(row)
		}
		if m.Fault == ReclaimForgetsMaximum {
			row.free(pending, backoffTicks-t.age)
		} else {
			m.putBack(row, j, t.age)
		}
	}
	next.txns[reclaim(k)] = txn{}
	next.forgetEnded()
	m.emit(step{kind: reclaiming, stage: commits, who: int8(k), job: -1, set: t.locked}, next, broken)
}

// forgetEnded frees those behind from jobs that are terminal.
func (s *state) forgetEnded() {
	for w := range maxWorkers {
		s.txns[w].ahead &= s.unfinished()
	}
}
