package model

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// lanes are those of one bucket, by partition key.
type lanes struct {
	byKey map[string]*lane
	after string // The next walk around the keys begins after this one.
}

// lane is the ordered jobs of one key.
type lane struct {
	waiting []*domain.JobRecord // By seq.
	running *domain.JobRecord   // The job claimed last; its claim may be over.
}

// freeHeads returns the first jobs of free lanes of a bucket, at most so many. A lane is free
// when none of its jobs is being processed and the first that waits was due by then: a retry
// or a job that is put off holds up those behind it, a finished one does not. The lanes take
// turns, so that none waits for ever behind the same others.
func (q *Queue) freeHeads(where place, limit int, then time.Time) []*domain.JobRecord {
	all := q.lanes[where]
	if all == nil || limit <= 0 {
		return nil
	}
	var heads []*domain.JobRecord
	for _, key := range all.ring() {
		head := all.byKey[key].head()
		if head == nil || head.AvailableAt.After(then) {
			continue
		}
		heads = append(heads, head)
		if len(heads) == limit {
			all.after = key
			return heads
		}
	}
	if len(heads) > 0 {
		all.after = "" // The walk came around. One that found nothing may have been too early.
	}
	return heads
}

// ring lists the keys in the order of a walk.
func (l *lanes) ring() []string {
	keys := slices.Sorted(maps.Keys(l.byKey))
	start, found := slices.BinarySearch(keys, l.after)
	if found {
		start++
	}
	return slices.Concat(keys[start:], keys[:start])
}

// wait tells whether any job waits in a lane.
func (l *lanes) wait() bool {
	if l == nil {
		return false
	}
	for _, each := range l.byKey {
		if len(each.waiting) > 0 {
			return true
		}
	}
	return false
}

// head returns the job that is next, or nil while the lane is empty or one is being processed.
func (l *lane) head() *domain.JobRecord {
	if len(l.waiting) == 0 || l.running != nil && l.running.Status == domain.StatusProcessing {
		return nil
	}
	return l.waiting[0]
}

func (q *Queue) enterLane(job *domain.JobRecord) {
	all := q.lanes[placeOf(job)]
	if all == nil {
		all = &lanes{byKey: map[string]*lane{}}
		q.lanes[placeOf(job)] = all
	}
	own := all.byKey[job.PartitionKey]
	if own == nil {
		own = &lane{}
		all.byKey[job.PartitionKey] = own
	}
	at, _ := slices.BinarySearchFunc(own.waiting, job, compareSeq)
	own.waiting = slices.Insert(own.waiting, at, job)
}

// leaveLane takes a job out of those that wait.
func (q *Queue) leaveLane(job *domain.JobRecord) {
	own := q.lanes[placeOf(job)].byKey[job.PartitionKey]
	at, _ := slices.BinarySearchFunc(own.waiting, job, compareSeq)
	own.waiting = slices.Delete(own.waiting, at, at+1)
}

// occupyLane makes a job the one of its lane that runs.
func (q *Queue) occupyLane(job *domain.JobRecord) {
	q.lanes[placeOf(job)].byKey[job.PartitionKey].running = job
}

func compareSeq(a, b *domain.JobRecord) int {
	return cmp.Compare(a.Seq, b.Seq)
}
