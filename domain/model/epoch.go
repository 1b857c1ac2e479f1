package model

import "github.com/holdfast-pg/holdfast/domain"

// Promote stands for a failover to a server that lacks the latest claims, at most so many:
// their generations are given again. The jobs of those that still hold are pending as they
// were before, with the attempt unspent; what else they did is not undone.
func (q *Queue) Promote(lost int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.generation = max(q.generation-int64(lost), 0)
	q.promotions++
	for _, job := range q.inbox {
		if job.Status == domain.StatusProcessing && job.Generation > q.epoch<<40+q.generation {
			job.Attempts--
			unclaim(job)
			q.wait(job)
		}
	}
}

// advanceEpoch raises the epoch after failovers, before the first claim that follows them. In
// the database the event's detail names the incarnation, which a model has not.
func (q *Queue) advanceEpoch() {
	if q.promotions > 0 {
		q.addEvent(domain.Event{Kind: domain.EventEpochAdvanced})
	}
	q.epoch += q.promotions
	q.promotions = 0
}
