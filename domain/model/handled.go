package model

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// markKey is what a mark is found by.
type markKey struct {
	scope string
	key   string
}

// mark says whose handler made it and when.
type mark struct {
	job  domain.JobID
	made time.Time
}

// MarkHandled records that the named effect of a job is done, and tells whether this is the
// first time.
func (q *Queue) MarkHandled(ctx context.Context, id domain.JobID, name string) (first bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, fmt.Errorf("mark %s of job %s handled: %w", name, id, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	key := markKey{scope: name, key: id.String()}
	if _, exists := q.marks[key]; exists {
		return false, nil
	}
	q.marks[key] = mark{job: id, made: q.now()}
	return true, nil
}

// expireMarks forgets marks of a certain age whose job has left the inbox: a mark must
// outlive every run of its job.
func (q *Queue) expireMarks(age time.Duration) (expired int64) {
	since := q.now().Add(-age)
	for key, found := range q.marks {
		if found.made.Before(since) && q.inbox[found.job] == nil {
			delete(q.marks, key)
			expired++
		}
	}
	return expired
}
