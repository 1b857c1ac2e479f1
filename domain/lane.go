package domain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-pg/holdfast/gen"
)

// Bounds of one claim of lanes.
const (
	// laneBucketsUnasked is how many buckets are locked without a look which of them hold jobs.
	laneBucketsUnasked = 8

	// laneBucketsAtOnce is how many buckets a transaction locks at most: many more, by many
	// claimers, fill the lock table, which all clients of the server share.
	laneBucketsAtOnce = 64

	// laneRounds is how many transactions a claim may take to fill its batch. What they do
	// not reach is left to later claims.
	laneRounds = 4

	// laneKeysPerBucket and laneKeysAtOnce are how many keys a transaction visits at most: in
	// an outage every key is backing off, and a claim would visit them all.
	laneKeysPerBucket = 256
	laneKeysAtOnce    = 2048
)

// errLaneTaken says that the unique index stopped a second claim of a lane.
var errLaneTaken = errors.New("a lane was claimed twice at the same time: nothing was claimed, try again")

// claimLanes claims the first jobs of free lanes, from a few buckets at a time until the batch
// is full. Each few are one transaction, so jobs that were claimed before an error stay so.
func (q *Queue) claimLanes(ctx context.Context, request ClaimRequest) ([]ClaimedJob, error) {
	jobs := []ClaimedJob{}
	buckets := int32s(request.Buckets)
	// Where lanes are free, a bucket for each job is plenty; where they are not, all are tried.
	size := min(max(request.Batch, laneBucketsUnasked), laneBucketsAtOnce)
	for round := 0; round < laneRounds && len(jobs) < request.Batch; round++ {
		waiting, err := q.laneBuckets(ctx, request.Queue, buckets, size)
		if err != nil || len(waiting) == 0 {
			return jobs, err
		}
		walk, err := q.walkLanes(ctx, request, waiting, request.Batch-len(jobs))
		jobs = append(jobs, walk.jobs...)
		if err != nil || walk.reached == len(waiting) && len(waiting) < size {
			return jobs, err
		}
		buckets = buckets[slices.Index(buckets, waiting[walk.reached-1])+1:]
		size = laneBucketsAtOnce
	}
	return jobs, nil
}

// laneBuckets returns the first buckets in which jobs of lanes may wait, as many as the size.
func (q *Queue) laneBuckets(ctx context.Context, queue string, buckets []int32, size int) ([]int32, error) {
	if len(buckets) <= laneBucketsUnasked {
		return buckets, nil
	}
	return q.queries.ListLaneBuckets(ctx, q.plannedWork, gen.ListLaneBucketsParams{PartitionBuckets: buckets, Queue: queue, Bound: int32(size)})
}

// laneWalk is what one transaction did.
type laneWalk struct {
	jobs    []ClaimedJob
	reached int // How many of the buckets it is done with.
}

// walkLanes claims at most so many jobs from the buckets, in one transaction.
func (q *Queue) walkLanes(ctx context.Context, request ClaimRequest, buckets []int32, batch int) (laneWalk, error) {
	walks := q.cursors.begin(request.Queue, buckets)
	rows, err := q.queries.ClaimLanes(ctx, q.inLanes(request.Queue, buckets), gen.ClaimLanesParams{
		Queue:            request.Queue,
		PartitionBuckets: buckets,
		AfterKeys:        afterKeys(walks),
		DueFor:           request.DueFor,
		Keys:             int32(min(laneKeysPerBucket, laneKeysAtOnce/len(buckets))),
		Quota:            int32(request.Quota),
		Batch:            int32(batch),
		WorkerID:         request.WorkerID,
		Lease:            request.Lease,
	})
	if err != nil {
		return laneWalk{}, explainLanes(err)
	}
	done := laneWalk{reached: len(buckets)}
	for _, row := range rows {
		isJob := row.LeaseGeneration != 0
		if isJob {
			done.jobs = append(done.jobs, newClaimedJob(gen.ClaimJobsRow(row), request.WorkerID))
		}
		walks[slices.Index(buckets, row.PartitionBucket)].visit(row.PartitionKey, isJob)
	}
	if len(rows) == batch {
		last := lastVisited(walks)
		walks[last].cutOff = true
		done.reached = last + 1
	}
	q.cursors.end(request.Queue, walks, request.Quota)
	return done, nil
}

// inLanes returns a DBTX on which ClaimLanes is the fourth statement of a transaction: its
// snapshot is newer than the locks on the buckets, which LockLanes takes in front of it.
func (q *Queue) inLanes(queue string, buckets []int32) pipeline {
	return pipeline{
		db: q.work,
		before: []statement{
			beginLanes,
			planByIndex,
			record(func(db DBTX) error {
				return q.queries.LockLanes(context.Background(), db, gen.LockLanesParams{PartitionBuckets: buckets, Queue: queue})
			}),
		},
		after: []statement{commitLanes},
	}
}

var (
	beginLanes  = record(func(db DBTX) error { return gen.New().BeginLanes(context.Background(), db) })
	commitLanes = record(func(db DBTX) error { return gen.New().CommitLanes(context.Background(), db) })
)

func explainLanes(err error) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.ConstraintName == "inbox_lane_processing_idx" {
		return fmt.Errorf("%w (%w)", errLaneTaken, err)
	}
	return err
}

// laneCursors remembers at which keys the walks of buckets go on, those that were cut off:
// else the first keys of a bucket, ready or blocked, would keep the later ones waiting for as
// long as they take all of a claim. They are hints: any cursor gives a right answer.
type laneCursors struct {
	mutex sync.Mutex
	after map[laneBucket]string
}

type laneBucket struct {
	queue  string
	bucket int32
}

// bucketWalk is how far the walk around the keys of a bucket came.
type bucketWalk struct {
	bucket int32
	after  string // It began after this key.
	last   string // The last key that it claimed or was cut off at.
	jobs   int
	cutOff bool
}

func (c *laneCursors) begin(queue string, buckets []int32) []bucketWalk {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	walks := make([]bucketWalk, len(buckets))
	for i, bucket := range buckets {
		after := c.after[laneBucket{queue, bucket}]
		walks[i] = bucketWalk{bucket: bucket, after: after}
	}
	return walks
}

func afterKeys(walks []bucketWalk) []string {
	keys := make([]string, len(walks))
	for i, walk := range walks {
		keys[i] = walk.after
	}
	return keys
}

// end moves the cursors. A walk that came to nothing leaves its cursor: the bucket may have
// been locked by another claim. One that came around forgets it.
func (c *laneCursors) end(queue string, walks []bucketWalk, quota int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, walk := range walks {
		switch where := (laneBucket{queue, walk.bucket}); {
		case walk.cutOff || walk.jobs >= quota:
			if c.after == nil {
				c.after = map[laneBucket]string{}
			}
			c.after[where] = walk.last
		case walk.jobs > 0:
			delete(c.after, where)
		}
	}
}

// visit notes a key that the statement answered with, in any order: one that was claimed, or
// at which the walk was cut off.
func (w *bucketWalk) visit(key string, claimed bool) {
	if !w.visited() || w.comesLater(key) {
		w.last = key
	}
	if claimed {
		w.jobs++
	} else {
		w.cutOff = true
	}
}

func (w *bucketWalk) visited() bool {
	return w.jobs > 0 || w.cutOff
}

// comesLater tells whether the walk comes to a key later than to its last one. It starts over
// at the first key when there is none left after that at which it began.
func (w *bucketWalk) comesLater(key string) bool {
	secondLap, lastOnSecondLap := key <= w.after, w.last <= w.after
	if secondLap != lastOnSecondLap {
		return secondLap
	}
	return key > w.last
}

// lastVisited returns the place of the last walk that came to anything.
func lastVisited(walks []bucketWalk) int {
	place := len(walks) - 1
	for place > 0 && !walks[place].visited() {
		place--
	}
	return place
}
