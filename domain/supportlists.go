package domain

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-pg/holdfast/gen"
)

// State is where a job stands as a person sees it: its Status, and of a pending job what it
// waits for.
type State string

// The states.
const (
	StateReady      State = "ready"       // Pending and due.
	StateScheduled  State = "scheduled"   // Pending, not due yet, never tried.
	StateRetrying   State = "retrying"    // Pending, not due yet, tried.
	StateProcessing State = "processing"  // Claimed.
	StateFailed     State = "failed"      // Its handler said that no attempt can succeed.
	StateDeadLetter State = "dead_letter" // Its attempts are spent.
	StateCompleted  State = "completed"   // Done.
)

// States are all of them, in the order of a job's life.
func States() []State {
	return []State{StateReady, StateScheduled, StateRetrying, StateProcessing, StateFailed, StateDeadLetter, StateCompleted}
}

// ListedJob is a job in a list: what it belongs to and how it stands, without its payload.
type ListedJob struct {
	ID               JobID      `json:"id"`
	Queue            string     `json:"queue"`
	Kind             string     `json:"kind"`
	PartitionKey     string     `json:"partition_key"`
	Bucket           int        `json:"bucket"`
	Ordered          bool       `json:"ordered"`
	State            State      `json:"state"`
	SinceSeconds     float64    `json:"since_seconds"` // For how long it has been due, claimed or ended; less than 0: until it is due.
	Attempts         int        `json:"attempts"`
	MaxAttempts      int        `json:"max_attempts"`
	Generation       int64      `json:"generation"`
	ClaimedBy        *string    `json:"claimed_by"`
	ClaimedAt        *time.Time `json:"claimed_at"`
	LeaseExpiresAt   *time.Time `json:"lease_expires_at"`
	LeaseLeftSeconds *float64   `json:"lease_left_seconds"` // Less than 0: it is past its lease.
	AvailableAt      time.Time  `json:"available_at"`
	CreatedAt        time.Time  `json:"created_at"`
	FinishedAt       *time.Time `json:"finished_at"`
	IdempotencyKey   *string    `json:"idempotency_key"`
	LastError        string     `json:"last_error"`                  // The first 300 characters.
	Fingerprint      string     `json:"error_fingerprint,omitempty"` // Of a dead job: the group of its error.

	seq int64
}

// Expired tells whether it is claimed and past its lease.
func (j ListedJob) Expired() bool { return j.LeaseLeftSeconds != nil && *j.LeaseLeftSeconds < 0 }

// Dead tells whether it has ended without success.
func (j ListedJob) Dead() bool { return j.State == StateFailed || j.State == StateDeadLetter }

// listedRow is a row as most lists return it.
type listedRow = gen.ListNewestJobsRow

func newListedJob(row listedRow) ListedJob {
	job := ListedJob{
		ID: row.ID.Bytes, Queue: row.Queue, Kind: row.Kind, PartitionKey: row.PartitionKey, Bucket: int(row.PartitionBucket),
		Ordered: row.Ordered, Attempts: int(row.Attempts), MaxAttempts: int(row.MaxAttempts), Generation: row.LeaseGeneration,
		ClaimedBy: row.ClaimedBy, ClaimedAt: row.ClaimedAt, LeaseExpiresAt: row.LeaseExpiresAt, AvailableAt: row.AvailableAt,
		CreatedAt: row.CreatedAt, FinishedAt: row.FinishedAt, IdempotencyKey: row.IdempotencyKey, LastError: row.LastError, seq: row.Seq,
	}
	since := row.AvailableAt
	switch {
	case row.Status == StatusPending && !row.AvailableAt.After(row.ReadAt):
		job.State = StateReady
	case row.Status == StatusPending && row.Attempts > 0:
		job.State = StateRetrying
	case row.Status == StatusPending:
		job.State = StateScheduled
	default:
		job.State = State(row.Status)
		for _, at := range []*time.Time{row.ClaimedAt, row.FinishedAt} {
			if at != nil {
				since = *at
			}
		}
	}
	job.SinceSeconds = row.ReadAt.Sub(since).Seconds()
	if row.LeaseExpiresAt != nil {
		job.LeaseLeftSeconds = new(row.LeaseExpiresAt.Sub(row.ReadAt).Seconds())
	}
	return job
}

// JobFilter says which jobs of a queue to list. What is left empty excludes none.
type JobFilter struct {
	Queue       string
	State       State
	Kind        string
	Key         string
	Fingerprint string // Of the error of a dead job.
	Limit       int    // At most so many.
	After       string // Where the page before ended: its Next.
}

// JobPage is a part of a list.
type JobPage struct {
	Items  []ListedJob `json:"items"`
	Next   string      `json:"next"`   // Where the next page begins; "" when there is none.
	Looked int         `json:"looked"` // At how many jobs: a list stops after 4,000 that it leaves out.
}

// mostLooked bounds the jobs that one page looks at. Kinds, keys and errors have no index of
// their own, so the jobs that are not wanted are passed by.
const mostLooked = 4_000

// ListJobs lists jobs of a queue. Each state has its order: ready and scheduled ones by when
// they are due, those of an ordered queue lane by lane after them; retrying ones by when they
// are due; those in flight by their claim, oldest first; failed and dead-lettered ones newest
// first; completed ones newest first, those that are kept before those that are archived,
// which are listed by the time of their enqueue. Without a state it lists all that is in the
// inbox, newest first. Errors: InvalidError for a state or a place that does not exist.
func ListJobs(ctx context.Context, db DBTX, filter JobFilter) (JobPage, error) {
	sources, err := sourcesOf(filter.State)
	if err != nil {
		return JobPage{}, err
	}
	return listJobs(ctx, db, filter, sources)
}

// ListDeadJobs lists failed and dead-lettered jobs of a queue, newest first, as ListJobs does.
func ListDeadJobs(ctx context.Context, db DBTX, filter JobFilter) (JobPage, error) {
	return listJobs(ctx, db, filter, []source{deadJobs("dead", StateFailed, StateDeadLetter)})
}

// ListLeases lists the work in flight of all queues, or of the one given, oldest claim first; with
// expired only what is past its lease.
func ListLeases(ctx context.Context, db DBTX, filter JobFilter, expired bool) (JobPage, error) {
	filter.State = StateProcessing
	claimed := claimedJobs
	claimed.keep = func(job ListedJob) bool { return !expired || job.Expired() }
	return listJobs(ctx, db, filter, []source{claimed})
}

func listJobs(ctx context.Context, db DBTX, filter JobFilter, sources []source) (JobPage, error) {
	reader := pageReader{db: inOrder(db), filter: filter, page: JobPage{Items: []ListedJob{}}}
	place, err := readCursor(filter.After, &sources)
	if err != nil {
		return JobPage{}, err
	}
	for i, from := range sources {
		more, err := reader.read(ctx, from, place)
		if err != nil {
			return JobPage{}, fmt.Errorf("list jobs of queue %q: %w", filter.Queue, explain(err))
		}
		if more {
			break
		}
		if i+1 < len(sources) {
			place = sources[i+1].start
		}
	}
	return reader.page, nil
}

// pageReader fills a page.
type pageReader struct {
	db     DBTX
	filter JobFilter
	page   JobPage
}

// read adds what is wanted of a source, from a place on, and tells whether the page is complete
// before the source is at its end.
func (r *pageReader) read(ctx context.Context, from source, after place) (more bool, err error) {
	// One more than wanted tells whether there is another page.
	for n := r.filter.Limit + 1 - len(r.page.Items); r.page.Looked < mostLooked; n = from.size {
		n = min(n, from.size, mostLooked-r.page.Looked)
		jobs, err := from.next(ctx, r.db, r.filter.Queue, after, n)
		if err != nil {
			return false, err
		}
		for _, job := range jobs {
			if len(r.page.Items) == r.filter.Limit {
				r.page.Next = writeCursor(from.name, after)
				return true, nil
			}
			r.page.Looked++
			after = placeOf(job)
			if r.filter.keeps(job) && (from.keep == nil || from.keep(job)) {
				r.page.Items = append(r.page.Items, job)
			}
		}
		if len(jobs) < n {
			return false, nil
		}
	}
	r.page.Next = writeCursor(from.name, after)
	return true, nil
}

func (f JobFilter) keeps(job ListedJob) bool {
	return (f.Queue == "" || job.Queue == f.Queue) &&
		(f.State == "" || job.State == f.State) &&
		(f.Kind == "" || job.Kind == f.Kind) &&
		(f.Key == "" || job.PartitionKey == f.Key) &&
		(f.Fingerprint == "" || job.Fingerprint == f.Fingerprint)
}

// place is where a list stands: behind a job, of which each list compares what it is sorted by.
type place struct {
	at         time.Time // When it is due, or ended.
	id         JobID
	seq        int64
	generation int64
	bucket     int
	key        string
}

func placeOf(job ListedJob) place {
	at := job.AvailableAt
	if job.FinishedAt != nil {
		at = *job.FinishedAt
	}
	return place{at: at, id: job.ID, seq: job.seq, generation: job.Generation, bucket: job.Bucket, key: job.PartitionKey}
}

func (p place) uuid() pgtype.UUID { return p.id.uuid() }

// writeCursor writes down a place in a list, for a person to hand back.
func writeCursor(list string, p place) string {
	text := strings.Join([]string{
		list, strconv.FormatInt(p.at.UnixMicro(), 36), p.id.String(), strconv.FormatInt(p.seq, 36),
		strconv.FormatInt(p.generation, 36), strconv.Itoa(p.bucket), p.key,
	}, "\n")
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// readCursor returns the place, and leaves out the sources that are before it.
func readCursor(cursor string, sources *[]source) (place, error) {
	if cursor == "" {
		return (*sources)[0].start, nil
	}
	invalid := &InvalidError{Field: "after", Reason: fmt.Sprintf("%.60q is not where a page of this list ended", cursor)}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return place{}, invalid
	}
	fields := strings.SplitN(string(text), "\n", 7)
	at := slices.IndexFunc(*sources, func(from source) bool { return from.name == fields[0] })
	if at < 0 || len(fields) != 7 {
		return place{}, invalid
	}
	micros, err1 := strconv.ParseInt(fields[1], 36, 64)
	id, err2 := ParseJobID(fields[2])
	seq, err3 := strconv.ParseInt(fields[3], 36, 64)
	generation, err4 := strconv.ParseInt(fields[4], 36, 64)
	bucket, err5 := strconv.ParseInt(fields[5], 10, 32)
	for _, err := range []error{err1, err2, err3, err4, err5} {
		if err != nil {
			return place{}, invalid
		}
	}
	*sources = (*sources)[at:]
	return place{at: time.UnixMicro(micros), id: id, seq: seq, generation: generation, bucket: int(bucket), key: fields[6]}, nil
}
