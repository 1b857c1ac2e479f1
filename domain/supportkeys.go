package domain

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-pg/holdfast/gen"
)

// ErrKeyUnknown says that nothing was found under a partition key.
var ErrKeyUnknown = errors.New("no job of this key waits, runs or is dead")

// keyLook is how many jobs of a bucket, how many claims, and how many dead jobs of each state are
// looked at for those of a key.
const keyLook = 1_000

// KeyRecord is what is known of a partition key in a queue.
type KeyRecord struct {
	Queue  string      `json:"queue"`
	Key    string      `json:"key"`
	Bucket int         `json:"bucket"`
	Jobs   []ListedJob `json:"jobs"` // In the order of their enqueues, without completed ones.
}

// FindKey returns the jobs of a partition key, at most limit, in the order of their enqueues.
// Completed ones are not among them: nothing finds them by key. Ordered jobs that wait or run are all
// found; of the others those that are among the first 1,000 of their bucket, the 1,000 oldest
// claims, or the newest 1,000 of each of the dead states. ErrKeyUnknown: none of these is the key's.
func FindKey(ctx context.Context, db DBTX, queue, key string, limit int) (KeyRecord, error) {
	db = inOrder(db)
	meta, err := ReadMeta(ctx, db)
	if err != nil {
		return KeyRecord{}, err
	}
	found := KeyRecord{Queue: queue, Key: key, Bucket: BucketOf(key, meta.BucketCount)}
	rows, err := gen.New().ListKeyJobs(ctx, db, gen.ListKeyJobsParams{
		Queue: queue, PartitionBucket: int32(found.Bucket), PartitionKey: key, MaxRows: int32(limit), Look: keyLook,
	})
	found.Jobs, err = listed(rows, err, func(row gen.ListKeyJobsRow) ListedJob { return newListedJob(listedRow(row)) })
	if err != nil {
		return KeyRecord{}, fmt.Errorf("find key %q in queue %q: %w", key, queue, explain(err))
	}
	if len(found.Jobs) == 0 {
		return KeyRecord{}, fmt.Errorf("find key %q in queue %q: %w; looked at its lane, the first %d jobs that wait in its bucket %d, "+
			"the %d oldest claims, and the newest %d failed and dead-lettered jobs each", key, queue, ErrKeyUnknown, keyLook, found.Bucket, keyLook, keyLook)
	}
	return found, nil
}
