package protocol

// moves makes the steps that are possible in a state.
type moves struct {
	Bounds

	now  state
	emit func(what step, next state, broken Promise)
}

// all makes every step that anybody can take.
func (m *moves) all() {
	for w := range maxWorkers {
		m.claim(w)
		m.settle(w)
	}
	for k := range m.Keepers {
		m.keep(k)
	}
	if m.Departs {
		m.depart(0)
	}
	for i := range m.now.txns {
		m.breakOff(i)
	}
	m.operate()
	m.failOver()
	m.tick()
}

// first is the state in which everything begins.
func (b Bounds) first() state {
	var s state
	for j := range s.jobs {
		if !b.Lane && j < b.Jobs {
			s.jobs[j].status = pending
		}
		if j >= b.Jobs {
			s.jobs[j].status = completed // There is no such job.
		}
	}
	return s
}

// depart plays the end of a worker. A crash ends nothing that runs on the server.
func (m *moves) depart(w int) {
	self := m.now.workers[w]
	if self.registered == alive {
		m.become(w, drainingWorker, worker{self.life, draining})
	}
	if self.registered != dead {
		m.become(w, declaringDead, worker{self.life, dead})
	}
	if self.life < left {
		m.become(w, crashing, worker{crashed, self.registered})
	}
	m.beat(w)
	claims := m.now.txns[w].kind != nothing && m.Fault != LeaveBesideClaim
	switch {
	case self.life == stopping && !claims && !m.now.holdsAny(w):
		m.become(w, listingHeld, worker{emptied, self.registered})
	case self.life == emptied:
		m.become(w, leaving, worker{left, dead})
	}
}

// beat is a heartbeat, which may reach the database after everything else the worker did.
func (m *moves) beat(w int) {
	switch self := m.now.workers[w]; {
	case self.registered == alive:
	case m.Fault == BeatRevives:
		m.become(w, beating, worker{self.life, alive})
	case self.life == running:
		m.become(w, beating, worker{stopping, self.registered})
	}
}

func (m *moves) become(w int, how kind, to worker) {
	next := m.now
	next.workers[w] = to
	m.emit(step{kind: how, stage: commits, who: int8(w), job: -1}, next, judgeWorker(&m.now, &next, w))
}

// breakOff rolls a transaction back: a connection broke, a timeout ended it, a handler gave up.
// One that has drawn tokens leaves a gap in the sequence and is otherwise the same, so it is not
// played: the gaps would not end.
func (m *moves) breakOff(i int) {
	if t := m.now.txns[i]; t.kind != nothing && t.drawn == 0 {
		next := m.now
		next.txns[i] = txn{}
		m.emit(step{kind: t.kind, stage: breaks, who: whose(i), job: -1}, next, kept)
	}
}

// operate plays producers, whose enqueues commit in any order, and a person.
func (m *moves) operate() {
	for j, row := range m.now.jobs {
		next := m.now
		switch {
		case row.status == absent:
			next.jobs[j].status = pending
			m.emit(step{kind: enqueuing, stage: commits, job: int8(j)}, next, kept)
		case j >= m.Jobs:
		case (row.status == failed || row.status == deadLetter) && m.now.redrives < m.Redrives:
			next.redrives++
			next.jobs[j].free(pending, 0)
			next.jobs[j].attempts = 0
			if m.Fault == TokenPerJob {
				next.jobs[j].token = 0
			}
			m.emit(step{kind: redriving, stage: commits, job: int8(j)}, next, kept)
		}
		if j < m.Jobs && m.now.orders < m.Orders && !m.now.isLocked(j) {
			m.order(j)
		}
	}
}

// order plays what a person does to a job that is not locked: a locked one is left alone. Each
// is one statement whose locks nobody sees, for they are skipped or waited for.
func (m *moves) order(j int) {
	row := m.now.jobs[j]
	next := m.now
	next.orders++
	if row.status == processing {
		freed := next
		freed.jobs[j].free(pending, 0)
		freed.jobs[j].attempts--
		if m.Fault == ReleaseKeepsHolder {
			freed.jobs[j].holder = row.holder
		}
		m.emit(step{kind: freeing, stage: commits, job: int8(j), token: row.token}, freed, kept)
	}
	switch row.status {
	case pending, processing:
		next.jobs[j].free(failed, 0)
		next.forgetEnded()
		m.emit(step{kind: cancelling, stage: commits, job: int8(j)}, next, kept)
	case failed, deadLetter:
		next.jobs[j].free(completed, 0) // There is no such job any more.
		m.emit(step{kind: purging, stage: commits, job: int8(j)}, next, kept)
	default:
	}
}

// failOver loses the newest claim, though its worker believes in it, and all that runs. The new
// primary draws smaller tokens than the lost one, unless the epoch is raised.
func (m *moves) failOver() {
	newest := uint8(0)
	for _, row := range m.now.jobs {
		newest = max(newest, row.token)
	}
	for j, row := range m.now.jobs {
		if row.status != processing || row.token != newest || m.now.failovers == m.Failovers {
			continue
		}
		next := m.now
		next.failovers++
		next.txns = [len(next.txns)]txn{}
		next.jobs[j].free(pending, 0)
		next.jobs[j].attempts--
		if m.Fault == EpochNotRaised {
			next.sequence, next.jobs[j].token = newest-1, row.tokenBefore()
		}
		m.emit(step{kind: failingOver, stage: commits, job: int8(j), token: newest}, next, kept)
	}
}

// tick lets time go by, unless a transaction is at its end.
func (m *moves) tick() {
	next := m.now
	for i := range next.txns {
		t := &next.txns[i]
		if t.kind == nothing {
			continue
		}
		if t.age == m.Patience {
			return
		}
		t.age++
	}
	for j := range next.jobs {
		row := &next.jobs[j]
		switch row.status {
		case processing:
			row.deadline = max(row.deadline-1, -m.Patience-1)
		case pending:
			row.available = max(row.available-1, -m.Patience)
		default:
		}
	}
	m.emit(step{kind: ticking, stage: commits, job: -1}, next, kept)
}
