package judge

import (
	"fmt"

	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

func whereInLog(line uint32, lsn string) string {
	return fmt.Sprintf("%s, line %d (LSN %s)", history.WALFile, line, lsn)
}

// legalMove: the job moves as the table says, and has a holder exactly while it is processed.
func legalMove(j *judge, m *move) bool {
	job, row := m.job, m.new
	if m.old != nil && m.change.Table == history.Inbox && (m.old.Status != job.status.String() || m.old.Generation != job.generation) {
		j.broke(whoMay, m.about(), m.where(), "the change begins at %s of generation %d, and the one before ended at %s of %d", m.old.Status, m.old.Generation, job.status, job.generation)
	}
	switch {
	case row == nil:
		j.broke(whoMay, m.about(), m.where(), "the job, %s, was deleted", job.status)
		return true
	case m.kind == illegal:
		j.broke(whoMay, m.about(), m.where(), "from %s (generation %d, held by %q) to %s (held by %q) is a change that nobody may make",
			job.status, job.generation, j.workers.text(job.holder), m.to, row.ClaimedBy)
	case m.kind == redriven && job.redrives >= job.redrivesAllowed:
		j.broke(whoMay, m.about(), m.where(), "the job was redriven, and nobody had asked for it")
	}
	parts := 0
	for _, set := range []bool{row.ClaimedBy != "", !row.ClaimedAt.IsZero(), !row.LeaseExpiresAt.IsZero()} {
		if set {
			parts++
		}
	}
	if want := map[bool]int{true: 3, false: 0}[m.to == processing]; parts != want {
		j.broke(whoMay, m.about(), m.where(), "as %s it has %d of a holder, a time of claim and a deadline, want %d", m.to, parts, want)
	}
	return true
}

// redrivenAsTold: a redrive that was told as done is in the log.
func redrivenAsTold(j *judge, job *job) bool {
	if job.redrivesAllowed == 0 {
		return false
	}
	if job.redrives < job.redrivesTold {
		j.broke(whoMay, subject{job: job.number}, history.WALFile, "%d redrives were told as done, and the log has %d", job.redrivesTold, job.redrives)
	}
	return true
}

// claimedWhenDue: a job that waits for its backoff is not claimed before.
func claimedWhenDue(j *judge, m *move) bool {
	if m.kind != claimed {
		return false
	}
	if early := m.job.available - nanos(m.new.ClaimedAt); early > 0 {
		j.broke(comesBack, m.about(), m.where(), "it was claimed %d µs before it was due", early/1000)
	}
	return true
}

// tokens knows the largest generation that had been committed by each time, so far back as
// claims that are being committed can have begun.
type tokens struct {
	commits []int64
	largest []int64
}

const tokensKept = 1 << 16

// before returns the largest generation that had been committed before a time.
func (t *tokens) before(time int64) int64 {
	low, high := 0, len(t.commits)
	for low < high {
		if middle := (low + high) / 2; t.commits[middle] < time {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == 0 {
		return 0
	}
	return t.largest[low-1]
}

func (t *tokens) add(commit, generation int64) {
	if last := len(t.commits) - 1; last >= 0 {
		commit, generation = max(commit, t.commits[last]), max(generation, t.largest[last])
		if commit == t.commits[last] {
			t.largest[last] = generation
			return
		}
	}
	if len(t.commits) == 2*tokensKept {
		t.commits = append(t.commits[:0], t.commits[tokensKept:]...)
		t.largest = append(t.largest[:0], t.largest[tokensKept:]...)
	}
	t.commits, t.largest = append(t.commits, commit), append(t.largest, generation)
}

// tokenGrew: no claim has the generation of another, and each has a larger one than all that
// were committed before it began.
func tokenGrew(j *judge, m *move) bool {
	if m.kind != claimed {
		return false
	}
	generation, c := m.new.Generation, m.claim
	largest := max(j.tokens.before(nanos(m.new.ClaimedAt)), m.job.generation)
	switch {
	case c.logged:
		j.broke(tokensGrow, m.about(), m.where(), "job %s had been given the same generation", j.jobs.at(c.job).id)
	case c.job != 0 && c.job != m.job.number:
		j.broke(tokensGrow, m.about(), m.where(), "a worker was told the same generation for job %s", j.jobs.at(c.job).id)
	case generation <= largest:
		j.broke(tokensGrow, m.about(), m.where(), "generation %d had been given before this claim began", largest)
	}
	j.tokens.add(m.tx.commit, generation)
	return true
}

// attemptsCounted: attempts are the claims less the refunds since the last redrive, and a job
// is dead-lettered when they are spent, neither before nor after.
func attemptsCounted(j *judge, m *move) bool {
	if m.new == nil || m.kind == illegal {
		return false
	}
	want := int(m.job.attempts)
	switch m.kind {
	case claimed:
		want++
	case released:
		want--
	case redriven, arrived:
		want = 0
	default:
	}
	got, most := m.new.Attempts, m.new.MaxAttempts
	switch {
	case got != want:
		j.broke(bounded, m.about(), m.where(), "%s with %d attempts, want %d", moveNames[m.kind], got, want)
	case got > most:
		j.broke(bounded, m.about(), m.where(), "%s at attempt %d of %d", moveNames[m.kind], got, most)
	case m.kind == died && got < most:
		j.broke(bounded, m.about(), m.where(), "dead-lettered with %d of %d attempts spent", got, most)
	case m.kind == givenBack && got >= most:
		j.broke(bounded, m.about(), m.where(), "given back with %d of %d attempts spent", got, most)
	}
	return true
}

// startsCounted: a claim starts one handler at most, at the attempt of which it was told.
func startsCounted(j *judge, generation int64, c *claim) bool {
	if !c.logged || c.runs == 0 {
		return false
	}
	about := subject{job: c.job, generation: generation}
	if c.runs > 1 {
		j.broke(bounded, about, j.place(c.at), "two handlers were started under one claim")
	}
	if c.given && c.attemptTold != c.attempt {
		j.broke(bounded, about, j.place(c.at), "the worker was told attempt %d, and the log has %d", c.attemptTold, c.attempt)
	}
	return true
}
