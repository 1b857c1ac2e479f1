package judge

import (
	"strings"

	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

// moveKind is what a change does to a job.
type moveKind uint8

const (
	illegal moveKind = iota
	arrived          // Enqueued.
	claimed
	renewed
	givenBack // Pending again with its attempt spent: a retry, or a reclaim.
	released  // Pending again with its attempt refunded.
	died      // Dead-lettered, by a retry or a reclaim.
	gaveUp    // Failed.
	finished  // Completed.
	redriven
	rescheduled // A pending job's available_at moved.
	tidied      // A completed job moved, to the archive or within it.
)

var moveNames = [...]string{
	"a change that nobody may make", "enqueued", "claimed", "renewed", "given back, or reclaimed", "released", "dead-lettered", "failed", "completed",
	"redriven", "rescheduled", "archived",
}

// String returns what became of a claim.
func (k moveKind) String() string {
	if k == illegal {
		return "still held"
	}
	return moveNames[k]
}

func (k moveKind) ends() bool { return k >= givenBack && k <= finished }

// after is the status of a job after a settlement of each kind.
var after = map[moveKind]status{givenBack: pending, released: pending, died: deadLetter, gaveUp: failed, finished: completed}

// move is a change of a job, with the job as it was before.
type move struct {
	kind     moveKind
	tx       *transaction
	change   *change
	old, new *history.Row // nil: it was not there, or is no longer.
	job      *job
	to       status // After it.
	at       place
	claim    *claim // The one that it begins, renews or ends.
}

func (m *move) about() subject {
	about := subject{job: m.job.number, generation: m.job.generation}
	if m.new != nil {
		about.generation = m.new.Generation
	}
	return about
}

func (m *move) where() string {
	return whereInLog(m.change.line, m.change.LSN)
}

// applyMove has a change of a job checked, and then takes it down.
func (j *judge) applyMove(tx *transaction, c *change, old, row *history.Row) error {
	shown := row
	if shown == nil {
		shown = old
	}
	job, err := j.jobOf(shown.ID)
	if err != nil {
		return err
	}
	m := &move{tx: tx, change: c, old: old, new: row, job: job, at: inbox}
	if row == nil {
		m.at = nowhere
	} else if c.Table == history.Archive || c.What == history.Delete {
		m.at, m.to = archive, completed
	} else if m.to, err = parseStatus(row.Status); err != nil {
		return err
	}
	m.classify()
	if m.kind == claimed || m.kind == renewed || m.kind.ends() {
		m.claim = j.claimOf(shown.Generation)
	}
	for _, rule := range j.rules {
		if rule.move != nil && rule.move(j, m) {
			j.checked[rule.promise]++
		}
	}
	j.reachByMove(m)
	j.takeDown(m)
	return nil
}

// classify names the change by the status before and after it, and by what else it changed.
func (m *move) classify() {
	was := m.job.status
	switch {
	case m.new == nil:
	case was == none && m.at == inbox && m.to == pending && m.new.Generation == 0:
		m.kind = arrived
	case was == none || !m.same():
	case was == completed && m.to == completed && m.at == archive && m.new.Generation == m.job.generation:
		m.kind = tidied
	case m.to == processing && was == pending:
		m.kind = claimed
	case m.new.Generation != m.job.generation:
	case was == processing && m.to != processing:
		m.kind = m.classifyEnd()
	case was == processing && m.new.ClaimedBy == m.old.ClaimedBy && m.new.ClaimedAt.Equal(m.old.ClaimedAt):
		m.kind = renewed
	case was == pending && m.to == pending && m.new.Attempts == int(m.job.attempts):
		m.kind = rescheduled
	case (was == failed || was == deadLetter) && m.to == pending:
		m.kind = redriven
	}
}

func (m *move) classifyEnd() moveKind {
	switch m.to {
	case pending:
		if m.new.Attempts < int(m.job.attempts) {
			return released
		}
		return givenBack
	case deadLetter:
		return died
	case failed:
		return gaveUp
	case completed:
		return finished
	default:
		return illegal
	}
}

// same tells whether the change leaves alone what never changes.
func (m *move) same() bool {
	a, b := m.old, m.new
	return a != nil && a.ID == b.ID && a.Queue == b.Queue && a.PartitionKey == b.PartitionKey && a.IdempotencyKey == b.IdempotencyKey &&
		a.Kind == b.Kind && a.Seq == b.Seq && a.Ordered == b.Ordered && a.MaxAttempts == b.MaxAttempts
}

// worded tells whether a claim ended with an error text of its own, which a reclaim never
// writes: it leaves the last one, or says itself that the lease has ended.
func (m *move) worded() bool {
	return m.new.LastError != m.old.LastError && !strings.HasPrefix(m.new.LastError, "the lease of worker ")
}

// takeDown writes the change into the book.
func (j *judge) takeDown(m *move) {
	job, row := m.job, m.new
	if m.kind == claimed {
		j.takeDownClaim(m)
	}
	if m.kind == renewed && row.LeaseExpiresAt.After(m.old.LeaseExpiresAt) {
		m.claim.renewed++
	}
	if m.kind.ends() || job.status == processing && m.to != processing {
		j.takeDownEnd(m)
	}
	switch m.kind {
	case arrived:
		j.takeDownArrival(m)
	case redriven:
		job.redrives++
		if job.ordered {
			j.lane[job.lane].live++
		}
	case finished:
		job.completions = min(job.completions+1, 2)
		if job.booking {
			m.tx.done[job.generation] = job.number
		}
	default:
	}
	job.place, job.status = m.at, m.to
	if row == nil {
		return
	}
	job.generation = row.Generation
	job.attempts, job.max = uint16(row.Attempts), uint16(row.MaxAttempts)
	job.lease, job.available = nanos(row.LeaseExpiresAt), nanos(row.AvailableAt)
	if m.kind == claimed {
		job.firstLease = job.lease
	}
}

func (j *judge) takeDownArrival(m *move) {
	job, row := m.job, m.new
	job.seq, job.booking, job.ordered = row.Seq, row.Kind == history.Booking, row.Ordered
	m.tx.inserted = append(m.tx.inserted, job.number)
	if job.ordered {
		j.enterLane(job, row)
	}
	j.counts.Jobs++
}

func (j *judge) takeDownClaim(m *move) {
	c, job := m.claim, m.job
	j.counts.Claims++
	c.job, c.logged, c.line = job.number, true, m.change.line
	c.worker = j.workerOf(m.new.ClaimedBy)
	c.attempt = uint16(m.new.Attempts)
	job.holder = c.worker
	job.claims++
	j.holders[c.worker].held++
	if job.ordered {
		j.lane[job.lane].holder = job.number
	}
}

func (j *judge) takeDownEnd(m *move) {
	job := m.job
	if job.holder != 0 {
		j.holders[job.holder].held--
	}
	job.holder = 0
	if job.ordered {
		j.leaveLane(m)
	}
	if m.claim == nil {
		return
	}
	m.claim.end, m.claim.line = m.kind, m.change.line
	told, failed := j.failures[job.generation]
	m.claim.sentAgain = failed && m.tx.commit > told
	if m.kind == givenBack || m.kind == died {
		m.claim.early, m.claim.worded = m.tx.commit < job.lease, m.worded()
	}
}
