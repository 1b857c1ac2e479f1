package model

import (
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// retry gives a job with attempts left back after the delay and dead-letters any other.
func (q *Queue) retry(job *domain.JobRecord, delay time.Duration, text string) {
	kind := domain.EventRetried
	if job.Attempts >= job.MaxAttempts {
		kind = domain.EventDeadLettered
	}
	q.note(kind, job, *job.ClaimedBy, job.Attempts, &text)
	job.LastError = &text
	q.giveBack(job, delay)
}

// fail ends a job for good.
func (q *Queue) fail(job *domain.JobRecord, text string) {
	q.note(domain.EventFailed, job, *job.ClaimedBy, job.Attempts, &text)
	job.LastError = &text
	q.finish(job, domain.StatusFailed)
}

// release gives a job back after the delay and refunds the attempt.
func (q *Queue) release(job *domain.JobRecord, outcome domain.Outcome) {
	q.noteRelease(job, *job.ClaimedBy, outcome)
	job.Attempts--
	q.putOff(job, outcome.Delay)
}

// giveBack ends the current claim of a job without success. One without attempts left is
// dead; it gets the time of the next attempt all the same, as in the database.
func (q *Queue) giveBack(job *domain.JobRecord, delay time.Duration) {
	if job.Attempts < job.MaxAttempts {
		q.putOff(job, delay)
		return
	}
	job.AvailableAt = toMicroseconds(q.now().Add(delay))
	q.finish(job, domain.StatusDeadLetter)
}

// putOff ends the current claim of a job, which waits for the delay.
func (q *Queue) putOff(job *domain.JobRecord, delay time.Duration) {
	job.AvailableAt = toMicroseconds(q.now().Add(delay))
	unclaim(job)
	q.wait(job)
}
