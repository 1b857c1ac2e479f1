package support

import (
	"context"
	"slices"

	"github.com/holdfast-pg/holdfast/domain"
)

// Explanation is why a job is not running.
type Explanation struct {
	Job     domain.JobID  `json:"job"`
	State   domain.Status `json:"state"`
	Queue   string        `json:"queue"`
	Kind    string        `json:"kind"`
	Key     string        `json:"key"`
	Bucket  int           `json:"bucket"`
	Reasons []Reason      `json:"reasons"` // One at least.
}

// Reason is one of the reasons, and what to do about it. Each has to go before the job runs.
type Reason struct {
	Code    Code     `json:"code"`
	Text    string   `json:"text"`
	Do      string   `json:"do"`
	Because []Reason `json:"because,omitempty"` // Of a reason that is another job: why that one does not run.
}

// Code names a reason for programs.
type Code string

// The reasons why a job does not run: first those of a job that will not, then of one that
// does, then of one that waits.
const (
	Completed  Code = "completed"
	Failed     Code = "failed"
	DeadLetter Code = "dead_letter"

	Processing       Code = "processing"
	HolderAlive      Code = "holder_alive"
	HolderLate       Code = "holder_late"
	HolderDraining   Code = "holder_draining"
	HolderDead       Code = "holder_dead"
	HolderUnknown    Code = "holder_unknown"
	LeaseEnded       Code = "lease_ended"
	NobodyKeepsHouse Code = "nobody_keeps_house"

	QueuePaused    Code = "queue_paused"
	Scheduled      Code = "scheduled"
	GivenBack      Code = "given_back"
	Retrying       Code = "retrying"
	BehindHead     Code = "behind_head"
	LaneBusy       Code = "lane_busy"
	NoWorker       Code = "no_worker"
	KindNotServed  Code = "kind_not_served"
	BucketUnowned  Code = "bucket_unowned"
	OwnerLate      Code = "owner_late"
	OwnerLacksKind Code = "owner_lacks_kind"
	OwnerBusy      Code = "owner_busy"
	WorkersBusy    Code = "workers_busy"
	JobsBefore     Code = "jobs_before"
	Due            Code = "due"
)

// Explain tells why a job is not running. domain.ErrNotFound: there is no such job.
func Explain(ctx context.Context, db domain.Snapshotter, id domain.JobID) (explanation Explanation, err error) {
	err = domain.Snapshot(ctx, db, func(db domain.DBTX) error {
		job, err := domain.FindStanding(ctx, db, id)
		if err != nil {
			return err
		}
		workers, err := readFleet(ctx, db)
		if err != nil {
			return err
		}
		explanation = Explanation{
			Job: job.ID, State: job.Status, Queue: job.Queue, Kind: job.Kind, Key: job.PartitionKey, Bucket: job.Bucket,
		}
		explanation.Reasons, err = explainer{db, workers}.reasons(ctx, job, true)
		return err
	})
	return explanation, err
}

// explainer looks for reasons in one snapshot.
type explainer struct {
	db    domain.DBTX
	fleet *fleet
}

// reasons lists the reasons why the job does not run. further says to ask the same of a job
// that it waits for.
func (e explainer) reasons(ctx context.Context, job domain.Standing, further bool) ([]Reason, error) {
	switch job.Status {
	case domain.StatusProcessing:
		return e.processing(ctx, job)
	case domain.StatusPending:
		return e.pending(ctx, job, further)
	default:
		return []Reason{finished(job)}, nil
	}
}

// without leaves out the reasons that are among others already.
func without(reasons, others []Reason) []Reason {
	return slices.DeleteFunc(reasons, func(reason Reason) bool {
		return slices.ContainsFunc(others, func(other Reason) bool { return reason.Code == other.Code && reason.Text == other.Text })
	})
}
