package model

import (
	"context"
	"fmt"
	"strconv"
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
	return q.mark(markKey{scope: name, key: id.String()}, id), nil
}

// mark makes a mark, unless it is there.
func (q *Queue) mark(key markKey, id domain.JobID) (first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, exists := q.marks[key]; exists {
		return false
	}
	q.marks[key] = mark{job: id, made: q.now()}
	return true
}

// MarkApplied records that a projection has applied the job of this number, and tells whether
// this is the first time.
func (q *Queue) MarkApplied(ctx context.Context, projection string, seq int64, id domain.JobID) (first bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, fmt.Errorf("mark job %s applied to projection %q: %w", id, projection, err)
	}
	return q.mark(markKey{scope: projectionScope + projection, key: fmt.Sprintf("%019d", seq)}, id), nil
}

// projectionScope stands before the name of a projection among the marks.
const projectionScope = "projection:"

// ProjectionPosition returns the highest number that a projection has applied; 0: none.
func (q *Queue) ProjectionPosition(ctx context.Context, projection string) (seq int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("read the position of projection %q: %w", projection, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	latest := ""
	for key := range q.marks {
		if key.scope == projectionScope+projection {
			latest = max(latest, key.key)
		}
	}
	if latest == "" {
		return 0, nil
	}
	return strconv.ParseInt(latest, 10, 64)
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
