package doctor

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

var unservedQueues = check{
	id:       "unserved_queues",
	examines: "that every queue with due jobs has a live worker",
	why:      "Nobody claims these jobs.",
	severity: Error,
	schema:   true,
	find: func(ctx context.Context, p *patient) ([]symptom, error) {
		waiting, err := domain.UnservedQueues(ctx, p.pool, mostQueues)
		if err != nil {
			return nil, err
		}
		found := make([]symptom, len(waiting))
		for i, queue := range waiting {
			found[i] = symptom{
				what: fmt.Sprintf("queue %q has no live worker, and job %s has been due for %s", queue.Queue, queue.Job, queue.Age.Round(time.Second)),
				fix:  fmt.Sprintf("holdfast work --queue %s --exec COMMAND, or let a worker of your own serve it too", queue.Queue),
			}
		}
		return found, nil
	},
}

// defaultBuckets is the bucket count of an installation that nobody has changed.
const defaultBuckets = 1024

var orphanBuckets = check{
	id:       "orphan_buckets",
	examines: "that no pending job lies in a bucket at or above the bucket count",
	why:      "No worker's ring has such a bucket, so nobody claims its jobs. It comes of a bucket count that was lowered while there were jobs.",
	severity: Error,
	schema:   true,
	find: func(ctx context.Context, p *patient) ([]symptom, error) {
		orphans, err := domain.OrphanBuckets(ctx, p.pool, mostQueues)
		if err != nil {
			return nil, err
		}
		found := make([]symptom, len(orphans))
		for i, orphan := range orphans {
			count := defaultBuckets
			for count <= int(orphan.PartitionBucket) {
				count *= 2
			}
			found[i] = symptom{
				what: fmt.Sprintf("queue %q has pending jobs in bucket %d, and the bucket count is %d", orphan.Queue, orphan.PartitionBucket, p.meta.BucketCount),
				fix:  setBucketCount(count),
			}
		}
		return found, nil
	},
}

var leaseLength = check{
	id:       "lease_length",
	examines: "that every worker's lease is at least three times as long as its slow handlers take (p99), or 5 minutes",
	why:      "A lease is renewed while the handler runs, but a worker that pauses or loses the database for longer than what is left of it loses the job, and the handler runs twice.",
	severity: Warning,
	schema:   true,
	find: func(_ context.Context, p *patient) ([]symptom, error) {
		var found []symptom
		for _, said := range p.workers {
			p99 := time.Duration(said.HandleP99 * float64(time.Millisecond))
			if worker.IsEnoughLease(time.Duration(said.Lease*float64(time.Second)), p99) {
				continue
			}
			found = append(found, symptom{
				what: fmt.Sprintf("worker %s has a lease of %gs, and one handler in a hundred takes %.1fs or longer", said.ID, said.Lease, p99.Seconds()),
				fix:  fmt.Sprintf("holdfast work --lease %s, or Lease in holdfast.Config", worker.EnoughLease(p99)),
			})
		}
		return found, nil
	},
}

var expiredLeases = check{
	id:       "expired_leases",
	examines: "that leases that have ended are reclaimed within two housekeeping intervals",
	why:      "Nobody keeps house: the jobs of dead workers stay claimed and do not run.",
	severity: Error,
	schema:   true,
	find: func(ctx context.Context, p *patient) ([]symptom, error) {
		interval := 0.0
		for _, said := range p.workers {
			interval = max(interval, said.Housekeeping)
		}
		fix := "start a worker: each one keeps house for all queues"
		if interval == 0 {
			interval = 30
		} else {
			fix = "look for \"housekeeping\" in the logs of the workers: they live, and do not get to it"
		}
		leases, err := domain.CountOverdueLeases(ctx, p.pool, time.Duration(2*interval*float64(time.Second)))
		if err != nil || leases.Leases == 0 {
			return nil, err
		}
		return []symptom{{
			what: fmt.Sprintf("%d claims are past their lease, the first one for %s", leases.Leases, leases.Oldest.Round(time.Second)),
			fix:  fix,
		}}, nil
	},
}

// archiveLate is how long housekeeping may take to archive what is due.
const archiveLate = 10 * time.Minute

var completedRows = check{
	id:       "completed_rows",
	examines: "that completed jobs leave the inbox when their queue's time to keep them has passed",
	why:      "They are in the way of everything that reads the inbox. Housekeeping archives them, so either nobody keeps house or it does not keep up.",
	severity: Warning,
	schema:   true,
	find: func(ctx context.Context, p *patient) ([]symptom, error) {
		completed, err := domain.CountOverdueCompletions(ctx, p.pool, archiveLate)
		if err != nil || completed.Jobs == 0 {
			return nil, err
		}
		fix := "start a worker: each one keeps house for all queues"
		if len(p.workers) > 0 {
			fix = "holdfast queues set NAME --keep-for 1h, or --retention-mode archive: completions then leave the inbox at once"
		}
		return []symptom{{
			what: fmt.Sprintf("%d of the 1,000 oldest completed jobs in the inbox should have been archived, the oldest one %s ago", completed.Jobs, completed.Late.Round(time.Second)),
			fix:  fix,
		}}, nil
	},
}

var deadKeys = check{
	id:       "dead_keys",
	examines: "that no failed or dead-lettered job holds its idempotency key",
	why:      "An enqueue under the key is told of the dead job and adds none, until the key's window ends: the work is not done, and nobody is told.",
	severity: Warning,
	schema:   true,
	find: func(ctx context.Context, p *patient) ([]symptom, error) {
		keys, err := domain.CountDeadKeys(ctx, p.pool, mostQueues)
		if err != nil {
			return nil, err
		}
		found := make([]symptom, len(keys))
		for i, queue := range keys {
			count := strconv.FormatInt(queue.Jobs, 10)
			if queue.Jobs >= domain.DeadKeysBound {
				count = fmt.Sprintf("%d or more", queue.Jobs)
			}
			found[i] = symptom{
				what: fmt.Sprintf("%s dead jobs of queue %q hold their idempotency key", count, queue.Queue),
				fix:  freeKeys(queue.Queue),
			}
		}
		return found, nil
	},
}
