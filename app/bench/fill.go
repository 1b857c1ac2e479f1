package bench

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/db/bench"
	"github.com/holdfast-pg/holdfast/domain"
)

const (
	fillers     = 2      // Connections that fill the inbox: a statement keeps a core busy.
	fillBatch   = 50_000 // Jobs of one statement.
	bucketCount = 1024   // Of a new installation.
)

// filling is jobs that are in the inbox without anybody having enqueued them one by one.
type filling struct {
	jobs      int
	buckets   int     // The first so many hold them, equally many each.
	delay     float64 // Seconds until they are due.
	completed bool    // They are done, as in a queue in mode keep.
}

// fill adds jobs to the queue, which must exist, and a checkpoint.
func (s *stage) fill(ctx context.Context, with filling) error {
	keys, buckets := keysOf(with.buckets)
	payload := s.jobs.batch(1, s.server.started)[0].Args.(holdfast.RawArgs).Payload
	s.server.progress.begin(s.title+": fill", with.jobs)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(fillers)
	for done := 0; done < with.jobs && groupCtx.Err() == nil; {
		n := min(fillBatch, with.jobs-done)
		done += n
		group.Go(func() error {
			added, err := s.queries.FillInbox(groupCtx, s.pool, bench.FillInboxParams{
				Queue: queueName, Kind: jobKind, Payload: payload, Jobs: int32(n),
				Keys: keys, Buckets: buckets, DelaySeconds: with.delay, Completed: with.completed,
			})
			if err == nil && added != int64(n) {
				err = fmt.Errorf("%d of %d jobs were added to the queue %s", added, n, queueName)
			}
			return err
		})
		s.server.progress.at(done)
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return s.server.checkpoint(ctx)
}

// keysOf finds a key for each of the first buckets.
func keysOf(n int) (keys []string, buckets []int32) {
	keys, buckets = make([]string, n), make([]int32, n)
	for missing, number := n, 0; missing > 0; number++ {
		key := keyOf(uint64(number))
		bucket := domain.BucketOf(key, bucketCount)
		if bucket < n && keys[bucket] == "" {
			keys[bucket], buckets[bucket] = key, int32(bucket)
			missing--
		}
	}
	return keys, buckets
}
