package judge

import (
	"fmt"
	"slices"

	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

// keptAsked: what was acknowledged is in the log.
func keptAsked(j *judge, a *asked) bool {
	told := a.outcome == saidOK || a.outcome == saidDuplicate
	inLog := j.seen[a.marker]
	if !told && (a.outcome != saidAmbiguous || !inLog) {
		return false
	}
	about := subject{job: a.job}
	switch {
	case !inLog:
		j.broke(kept, about, j.place(a.at), "the enqueue was told as %s, and its transaction is not in the log", outcomeNames[a.outcome])
	case a.job != 0 && j.jobs.at(a.job).place == nowhere && j.jobs.at(a.job).final == 0 && j.jobs.at(a.job).status == none:
		j.broke(kept, about, j.place(a.at), "the enqueue is in the log (%s), and its job never was", outcomeNames[a.outcome])
	}
	return true
}

// keptJob: at the end each job is in exactly one place, and nothing else is anywhere.
func keptJob(j *judge, job *job) bool {
	about := subject{job: job.number, generation: job.generation}
	where := fmt.Sprintf("%s, line %d", history.FinalFile, job.finalLine)
	if job.finalLine == 0 {
		where = history.FinalFile
	}
	switch {
	case job.status == none && job.place == nowhere && job.final > 0:
		j.broke(kept, about, where, "at the end there is a job that the log never had")
	case job.status == none && job.place == nowhere:
		return false // Never committed.
	case job.final == 0:
		j.broke(kept, about, where, "at the end the job is gone; by the log it was last in %s", placeNames[job.place])
	case job.final > 1:
		j.broke(kept, about, where, "at the end the job is there twice")
	}
	return true
}

// togetherTx: each job, the row its producer placed and the producer's marker share a
// transaction, and so do a booking's completion and its row in the ledger.
func togetherTx(j *judge, tx *transaction) bool {
	if len(tx.inserted)+len(tx.placed)+len(tx.booked)+len(tx.done) == 0 {
		return false
	}
	where := whereInLog(tx.changes[0].line, tx.changes[0].LSN)
	for _, number := range tx.inserted {
		if !slices.ContainsFunc(tx.placed, func(row placed) bool { return row.job == number && tx.marks[row.marker] }) {
			j.broke(together, subject{job: number}, where, "the job was committed without what its producer wrote beside it")
		}
	}
	for _, row := range tx.placed {
		if job := j.jobs.at(row.job); job.status == none && job.place == nowhere || !tx.marks[row.marker] {
			j.broke(together, subject{job: row.job}, where, "what a producer wrote beside the job was committed without it")
		}
	}
	for generation, number := range tx.booked {
		if tx.done[generation] != number {
			j.broke(together, subject{job: number, generation: generation}, where, "what a HandleTx wrote was committed without the completion of its job")
		}
	}
	for generation, number := range tx.done {
		if tx.booked[generation] != number {
			j.broke(together, subject{job: number, generation: generation}, where, "a HandleTx's completion was committed without what its handler wrote")
		}
	}
	return true
}

// togetherAsked: what was rolled back, or told not to have happened, did not.
func togetherAsked(j *judge, a *asked) bool {
	if a.outcome != saidRolledBack && a.outcome != saidError {
		return false
	}
	if j.seen[a.marker] {
		j.broke(together, subject{job: a.job}, j.place(a.at), "the enqueue was told as %s, and its transaction is in the log", outcomeNames[a.outcome])
	}
	return true
}

// onceInserted: a queue and a key have one job.
func onceInserted(j *judge, m *move) bool {
	if m.kind != arrived || m.new.IdempotencyKey == "" {
		return false
	}
	j.tellKey(m.new.Queue, m.new.IdempotencyKey, m.job, m.where())
	return true
}

// onceAsked: whoever was told that it made the job did, and a duplicate made none.
func onceAsked(j *judge, a *asked) bool {
	if a.job == 0 || a.outcome != saidOK && a.outcome != saidDuplicate {
		return false
	}
	job := j.jobs.at(a.job)
	about := subject{job: a.job}
	switch {
	case a.outcome == saidOK && job.marker != 0 && job.marker != a.marker:
		j.broke(oncePerKey, about, j.place(a.at), "an enqueue was told that it made the job, and another did")
	case a.outcome == saidDuplicate && job.marker == a.marker && job.winner == 0:
		j.broke(oncePerKey, about, j.place(a.at), "the enqueue was told that the job is a duplicate, and made it")
	}
	if a.outcome == saidDuplicate && job.winner != 0 && job.winner != a.process {
		j.reach(keyOfTwo)
	}
	return true
}
