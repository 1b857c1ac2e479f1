package domain

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-pg/holdfast/gen"
)

// publishedPage is how many jobs a statement of WalkPublished reads.
const publishedPage = 1000

// PublishedFilter says which completed jobs of an outbox are meant.
type PublishedFilter struct {
	Queue string
	Key   string        // "" stands for every key.
	Since time.Duration // Enqueued so long ago at most, by the database's clock.
}

// PublishedJob is a completed job that can be published again.
type PublishedJob struct {
	ID           JobID           `json:"id"`
	Seq          int64           `json:"seq"`
	Kind         string          `json:"kind"`
	PartitionKey string          `json:"partition_key"`
	CreatedAt    time.Time       `json:"created_at"`
	Headers      json.RawMessage `json:"-"`
	Payload      json.RawMessage `json:"-"` // null where no payload was asked for.
}

// WalkPublished hands the completed jobs that a filter finds to each, a page at a time, those of
// a key in the order of their enqueue, until each returns false or an error. It reads archived
// and kept ones; a queue that drops its jobs has none. payload: with what they hold. Errors:
// ErrUnknownQueue, and what each returns.
func WalkPublished(ctx context.Context, db DBTX, filter PublishedFilter, payload bool, each func([]PublishedJob) (goOn bool, err error)) error {
	if _, err := FindQueue(ctx, db, filter.Queue); err != nil {
		return err
	}
	var held []PublishedJob // Of the millisecond that the page before ended in.
	for after := (JobID{}); ; {
		rows, err := gen.New().ListPublishedJobs(ctx, inOrder(db), gen.ListPublishedJobsParams{
			Queue: filter.Queue, PartitionKey: filter.Key, Since: filter.Since, AfterID: after.uuid(), WithPayload: payload, MaxRows: publishedPage,
		})
		if err != nil {
			return fmt.Errorf("read the published jobs of queue %q: %w", filter.Queue, explain(err))
		}
		page := held
		for _, row := range rows {
			after = row.ID.Bytes
			if row.Matches {
				page = append(page, PublishedJob{
					ID: after, Seq: row.Seq, Kind: row.Kind, PartitionKey: row.PartitionKey, CreatedAt: row.CreatedAt, Headers: row.Headers, Payload: row.Payload,
				})
			}
		}
		last := len(rows) < publishedPage
		if page, held = splitAtMoment(page, after, last); len(page) > 0 {
			if goOn, err := each(page); err != nil || !goOn {
				return err
			}
		}
		if last {
			return nil
		}
	}
}

// splitAtMoment sorts a page by seq and holds those of the millisecond back in which it ends:
// within one, ids have no order, and the next page may hold a job that comes before.
func splitAtMoment(page []PublishedJob, end JobID, last bool) (whole, held []PublishedJob) {
	cut := len(page)
	for !last && cut > 0 && [6]byte(page[cut-1].ID[:6]) == [6]byte(end[:6]) {
		cut--
	}
	whole, held = page[:cut:cut], page[cut:]
	sortBySeq(whole)
	return whole, held
}

func sortBySeq(jobs []PublishedJob) {
	slices.SortFunc(jobs, func(a, b PublishedJob) int { return cmp.Compare(a.Seq, b.Seq) })
}
