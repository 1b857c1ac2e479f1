package domain

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-pg/holdfast/gen"
)

// What a preview looks at, so that it is there at once.
const (
	PreviewCount = 10_000 // Jobs are counted up to here.
	previewLater = 1_000  // Jobs behind others are counted up to here.
	previewLanes = 500    // In so many lanes.
	previewShown = 5      // Jobs in the sample.
)

// Preview is what an operation on many jobs is about to do.
type Preview struct {
	// Jobs is how many there are. With JobsCapped there are more.
	Jobs       int  `json:"jobs"`
	JobsCapped bool `json:"jobs_capped"`

	// Sample are some of them.
	Sample []Operand `json:"sample"`

	// Ordered is how many of the jobs counted are of ordered keys, and Keys how many such keys
	// there are. Later is how many jobs of these keys, enqueued after the first that is meant,
	// wait or run already. With LaterCapped there may be more.
	Ordered     int   `json:"ordered"`
	Keys        int   `json:"ordered_keys"`
	Later       int64 `json:"later_jobs"`
	LaterCapped bool  `json:"later_jobs_capped"`

	// Until is the time after which a filter looked at nothing, for the walk that follows. Nil:
	// the jobs were named.
	Until *time.Time `json:"until"`
}

// PreviewDead previews what a filter finds.
func PreviewDead(ctx context.Context, db DBTX, filter DeadFilter) (Preview, error) {
	preview, heads := Preview{Sample: []Operand{}}, laneHeads{}
	until, err := collectDead(ctx, db, filter, time.Time{}, func(job Operand) bool {
		if preview.Jobs == PreviewCount {
			preview.JobsCapped = true
			return false
		}
		preview.add(job, heads)
		return true
	})
	if err != nil {
		return preview, err
	}
	if !until.IsZero() {
		preview.Until = &until
	}
	return preview, preview.countLater(ctx, db, heads)
}

// PreviewJobs previews jobs that a person named.
func PreviewJobs(ctx context.Context, db DBTX, jobs []Operand) (Preview, error) {
	preview, heads := Preview{Sample: []Operand{}}, laneHeads{}
	for _, job := range jobs {
		preview.add(job, heads)
	}
	return preview, preview.countLater(ctx, db, heads)
}

func (p *Preview) add(job Operand, heads laneHeads) {
	p.Jobs++
	if len(p.Sample) < previewShown {
		p.Sample = append(p.Sample, job)
	}
	if job.Ordered {
		p.Ordered++
		heads.add(job)
		p.Keys = len(heads)
	}
}

func (p *Preview) countLater(ctx context.Context, db DBTX, heads laneHeads) error {
	if p.Keys == 0 {
		return nil
	}
	params := heads.params(previewLanes)
	params.Most = previewLater + 1
	later, err := gen.New().CountLaterJobs(ctx, planned(db), params)
	if err != nil {
		return fmt.Errorf("count the jobs behind: %w", explain(err))
	}
	p.Later, p.LaterCapped = min(later, previewLater), later > previewLater || p.Keys > previewLanes
	return nil
}

// laneHeads are, for each lane, the first of the jobs that are meant.
type laneHeads map[laneName]Operand

type laneName struct{ queue, key string }

func (h laneHeads) add(job Operand) {
	lane := laneName{job.Queue, job.PartitionKey}
	if known, there := h[lane]; !there || job.Seq < known.Seq {
		h[lane] = job
	}
}

func (h laneHeads) params(most int) gen.CountLaterJobsParams {
	var params gen.CountLaterJobsParams
	for lane, job := range h {
		if len(params.Seqs) == most {
			break
		}
		params.Queues = append(params.Queues, lane.queue)
		params.PartitionKeys = append(params.PartitionKeys, lane.key)
		params.PartitionBuckets = append(params.PartitionBuckets, int32(job.ID.Bucket()))
		params.Seqs = append(params.Seqs, job.Seq)
	}
	return params
}

// Operand is a job that a person names, as it stands.
type Operand struct {
	ID           JobID  `json:"id"`
	Seq          int64  `json:"seq"`
	Queue        string `json:"queue"`
	Kind         string `json:"kind"`
	PartitionKey string `json:"partition_key"`
	Ordered      bool   `json:"ordered"`
	Status       Status `json:"status"`

	// Claim is the current one; its worker's id is "" when nobody holds the job.
	Claim Claim `json:"-"`
}

// Examine tells how jobs stand that somebody names, those that exist, by their seq. Of one that
// has left the inbox nothing but its state is known: it comes last.
func Examine(ctx context.Context, db DBTX, ids ...JobID) ([]Operand, error) {
	rows, err := gen.New().ExamineJobs(ctx, planned(db), uuids(ids))
	if err != nil {
		return nil, fmt.Errorf("examine %d jobs: %w", len(ids), explain(err))
	}
	found := make([]Operand, len(rows), len(ids))
	seen := map[JobID]bool{}
	for i, row := range rows {
		job := Operand{
			ID: row.ID.Bytes, Seq: row.Seq, Queue: row.Queue, Kind: row.Kind, PartitionKey: row.PartitionKey, Ordered: row.Ordered, Status: row.Status,
		}
		if row.ClaimedBy != nil {
			job.Claim = Claim{ID: job.ID, Bucket: job.ID.Bucket(), Generation: row.LeaseGeneration, WorkerID: *row.ClaimedBy}
		}
		found[i], seen[job.ID] = job, true
	}
	if len(seen) == len(ids) {
		return found, nil
	}
	states, err := jobStates(ctx, db, ids)
	if err != nil {
		return nil, fmt.Errorf("examine %d jobs: %w", len(ids), err)
	}
	for _, id := range ids {
		if state, exists := states[id]; exists && !seen[id] {
			found, seen[id] = append(found, Operand{ID: id, Status: state.Status}), true
		}
	}
	return found, nil
}
