package domain

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/holdfast-pg/holdfast/gen"
)

// How far a count goes. One that needs a row of the table for each job looks at fewer.
const (
	mostCounted  = 10_000
	mostLanes    = 4_000 // Ordered jobs that wait.
	mostClaims   = 4_000
	mostKept     = 4_000
	mostArrivals = 2_000
	mostRecent   = 2_000 // Kept jobs that were just completed.
	recentPages  = 300   // Of the archive, where the latest ones are.
)

// Count is how many jobs there are, as far as was counted.
type Count struct {
	Jobs int64 `json:"jobs"`
	More bool  `json:"more"` // There are more: counting stopped here, or looked at a part only.
}

// String is the number, with a plus sign where there are more.
func (c Count) String() string {
	text := strconv.FormatInt(c.Jobs, 10)
	if c.More {
		text += "+"
	}
	return text
}

// counted is the count of a statement that was asked for one more than most.
func counted(jobs int64, most int) Count {
	return Count{Jobs: min(jobs, int64(most)), More: jobs > int64(most)}
}

// plus adds two counts, and stops where each of them does.
func (c Count) plus(other Count) Count {
	sum := counted(c.Jobs+other.Jobs, mostCounted)
	sum.More = sum.More || c.More || other.More
	return sum
}

// Arrivals are the jobs of a queue that were enqueued within the last minute: the newest 2,000 of
// all queues, so that the time that they cover may be shorter. A completion that drops its job
// hides it.
type Arrivals struct {
	Jobs        int64   `json:"jobs"`
	Completed   int64   `json:"completed"`    // Of these.
	SpanSeconds float64 `json:"span_seconds"` // What they cover: 60, or less where there are more.
	PerSecond   float64 `json:"per_second"`
}

// Completions are the jobs of a queue that were completed within the last minute, however long they
// had waited: those found in the last 300 pages of the archive, some 6,000 of all queues, and
// among the newest 2,000 kept ones. Where there are more, the time that they cover is shorter, and
// it begins with the UTC day. A completion that drops its job hides it.
type Completions struct {
	Jobs        int64   `json:"jobs"`
	SpanSeconds float64 `json:"span_seconds"` // What they cover: 60, or less.
	PerSecond   float64 `json:"per_second"`
}

// QueueLoad is what waits in a queue, runs and has ended, counted up to 10,000 each.
type QueueLoad struct {
	Queue            string   `json:"queue"`
	OldestAgeSeconds *float64 `json:"oldest_age_seconds"` // How long the oldest due job has been due; null when none is.
	Ready            Count    `json:"ready"`              // Due. Of an ordered queue also those behind the head of their lane.
	Scheduled        Count    `json:"scheduled"`          // Not due yet, never tried.
	Retrying         Count    `json:"retrying"`           // Not due yet, tried.
	Processing       Count    `json:"processing"`         // Claimed.
	Expired          Count    `json:"expired"`            // Of these, past their lease.
	Failed           Count    `json:"failed"`
	DeadLetter       Count    `json:"dead_letter"`
	Completed        Count    `json:"completed"` // Kept in the inbox; without those in the archive.

	Arrivals    Arrivals    `json:"arrivals"`
	Completions Completions `json:"completions"`
}

// Dead are the jobs that have ended without success.
func (l QueueLoad) Dead() Count { return l.Failed.plus(l.DeadLetter) }

// QueueLoads counts the jobs of queues. No statement of it reads more with a larger backlog; it
// sends four for all of them and five or six for each.
func QueueLoads(ctx context.Context, db DBTX, queues ...string) ([]QueueLoad, error) {
	look := newLook(ctx, inOrder(db))
	if look.err != nil {
		return nil, fmt.Errorf("count jobs: %w", explain(look.err))
	}
	loads := make([]QueueLoad, len(queues))
	for i, queue := range queues {
		loads[i] = look.load(ctx, queue)
		if look.err != nil {
			return nil, fmt.Errorf("count the jobs of queue %q: %w", queue, explain(look.err))
		}
	}
	return loads, nil
}

// look counts, until something goes wrong.
type look struct {
	db       DBTX
	queries  *gen.Queries
	buckets  int
	claims   InFlight
	kept     []gen.CountKeptJobsRow
	arrivals []gen.CountArrivalsRow
	finished []gen.CountCompletionsRow
	err      error
}

// newLook counts what is counted for all queues at once.
func newLook(ctx context.Context, db DBTX) *look {
	l := &look{db: db, queries: gen.New()}
	var meta Meta
	if meta, l.err = ReadMeta(ctx, db); l.err != nil {
		return l
	}
	l.buckets = meta.BucketCount
	if l.claims, l.err = CountInFlight(ctx, db); l.err != nil {
		return l
	}
	if l.kept, l.err = l.queries.CountKeptJobs(ctx, db, mostKept+1); l.err != nil {
		return l
	}
	if l.arrivals, l.err = l.queries.CountArrivals(ctx, db, mostArrivals); l.err != nil {
		return l
	}
	l.finished, l.err = l.queries.CountCompletions(ctx, db, gen.CountCompletionsParams{Pages: recentPages, Most: mostRecent})
	return l
}

func (l *look) load(ctx context.Context, queue string) QueueLoad {
	load := QueueLoad{Queue: queue}
	l.countPending(ctx, &load)
	l.countDead(ctx, &load)
	load.Processing, load.Expired = l.claims.ofQueue(queue)
	for _, row := range l.kept {
		load.Completed.More = load.Completed.More || row.Looked > mostKept
		if row.Queue == queue {
			load.Completed.Jobs = row.Jobs
		}
	}
	for _, row := range l.arrivals {
		if row.Queue == queue {
			span := row.Span.Seconds()
			load.Arrivals = Arrivals{Jobs: row.Jobs, Completed: row.Completed, SpanSeconds: span, PerSecond: float64(row.Jobs) / span}
		}
	}
	for _, row := range l.finished {
		if row.Queue == queue {
			span := row.Span.Seconds()
			load.Completions = Completions{Jobs: row.Jobs, SpanSeconds: span, PerSecond: float64(row.Jobs) / span}
		}
	}
	return load
}

// countPending counts what waits: jobs that are not ordered, then those in lanes.
func (l *look) countPending(ctx context.Context, load *QueueLoad) {
	ready := l.count(func() (int64, error) {
		return l.queries.CountReadyJobs(ctx, l.db, gen.CountReadyJobsParams{Queue: load.Queue, Most: mostCounted + 1})
	})
	retrying := l.count(func() (int64, error) {
		return l.queries.CountRetryingJobs(ctx, l.db, gen.CountRetryingJobsParams{Queue: load.Queue, Most: mostCounted + 1})
	})
	// Those that were tried are among them.
	most := mostCounted + int(retrying)
	future := l.count(func() (int64, error) {
		return l.queries.CountFutureJobs(ctx, l.db, gen.CountFutureJobsParams{Queue: load.Queue, Most: int32(most + 1)})
	})
	if l.err != nil {
		return
	}
	var lanes gen.CountLaneJobsRow
	// From the first bucket on it would see the same lanes each time, where there are more.
	from := rand.Int32N(int32(l.buckets))
	lanes, l.err = l.queries.CountLaneJobs(ctx, l.db, gen.CountLaneJobsParams{Queue: load.Queue, FromBucket: from, Most: mostLanes + 1})
	behind := lanes.Looked > mostLanes
	load.Ready = counted(ready, mostCounted).plus(Count{Jobs: lanes.Ready, More: behind})
	load.Retrying = counted(retrying, mostCounted)
	scheduled := max(future+lanes.Looked-lanes.Ready-retrying, 0)
	load.Scheduled = Count{Jobs: min(scheduled, mostCounted), More: scheduled > mostCounted || behind || load.Retrying.More}
	l.oldest(ctx, load, ready > 0, lanes)
}

// oldest finds out how long the oldest due job has been due.
func (l *look) oldest(ctx context.Context, load *QueueLoad, ready bool, lanes gen.CountLaneJobsRow) {
	var age time.Duration
	if ready && l.err == nil {
		pending, err := OldestPendingJob(ctx, l.db, load.Queue)
		if err != nil && !errors.Is(err, ErrNotFound) { // It may have been claimed meanwhile.
			l.err = err
		}
		age = pending.Age
	}
	if ready || lanes.Ready > 0 {
		load.OldestAgeSeconds = new(max(age, lanes.OldestAge).Seconds())
	}
}

func (l *look) countDead(ctx context.Context, load *QueueLoad) {
	if l.err != nil {
		return
	}
	var dead gen.CountDeadJobsRow
	dead, l.err = l.queries.CountDeadJobs(ctx, l.db, gen.CountDeadJobsParams{Queue: load.Queue, Most: mostCounted + 1})
	load.Failed, load.DeadLetter = counted(dead.Failed, mostCounted), counted(dead.DeadLetter, mostCounted)
}

func (l *look) count(ask func() (int64, error)) (jobs int64) {
	if l.err == nil {
		jobs, l.err = ask()
	}
	return jobs
}

// InFlight is the work that is claimed, as far as its 4,000 oldest claims show it.
type InFlight struct {
	Claims Count        `json:"claims"`
	Shares []ClaimShare `json:"shares"`
}

// ClaimShare is what one worker holds of one queue.
type ClaimShare struct {
	Queue            string  `json:"queue"`
	WorkerID         string  `json:"worker_id"`
	Jobs             int64   `json:"jobs"`
	Expired          int64   `json:"expired"`            // Of these, past their lease.
	OldestAgeSeconds float64 `json:"oldest_age_seconds"` // Of its oldest claim.
}

// CountInFlight counts the work in flight by queue and worker.
func CountInFlight(ctx context.Context, db DBTX) (InFlight, error) {
	rows, err := gen.New().CountClaims(ctx, inOrder(db), mostClaims+1)
	if err != nil {
		return InFlight{}, fmt.Errorf("count the work in flight: %w", explain(err))
	}
	found := InFlight{Shares: make([]ClaimShare, len(rows))}
	for i, row := range rows {
		found.Shares[i] = ClaimShare{
			Queue: row.Queue, WorkerID: row.WorkerID, Jobs: row.Jobs, Expired: row.Expired, OldestAgeSeconds: row.OldestAge.Seconds(),
		}
		found.Claims = counted(row.Looked, mostClaims)
	}
	return found, nil
}

// OfWorker tells how much of it a worker holds.
func (f InFlight) OfWorker(id string) Count {
	held := Count{More: f.Claims.More}
	for _, share := range f.Shares {
		if share.WorkerID == id {
			held.Jobs += share.Jobs
		}
	}
	return held
}

// ofQueue tells how much of it is a queue's, and how much of that is past its lease.
func (f InFlight) ofQueue(queue string) (held, expired Count) {
	held.More, expired.More = f.Claims.More, f.Claims.More
	for _, share := range f.Shares {
		if share.Queue == queue {
			held.Jobs += share.Jobs
			expired.Jobs += share.Expired
		}
	}
	return held, expired
}

// Counters are how many jobs an installation has ever seen. What two readings differ by, over the
// time between them, are the rates of that moment.
type Counters struct {
	Enqueued int64     `json:"enqueued"` // Also by transactions that were rolled back.
	Claimed  int64     `json:"claimed"`  // Each attempt counts.
	Known    bool      `json:"known"`    // The role may read the sequences.
	ReadAt   time.Time `json:"read_at"`
}

// ReadCounters reads the sequences that number jobs and claims.
func ReadCounters(ctx context.Context, db DBTX) (Counters, error) {
	row, err := gen.New().ReadCounters(ctx, db)
	if err != nil {
		return Counters{}, fmt.Errorf("read the counters: %w", explain(err))
	}
	return Counters(row), nil
}

// Since returns how many jobs a second were enqueued and claimed since an earlier reading; not
// known where one of them is not, or where the sequences began anew in between.
func (c Counters) Since(earlier Counters) (enqueued, claimed float64, known bool) {
	seconds := c.ReadAt.Sub(earlier.ReadAt).Seconds()
	came, began := c.Enqueued-earlier.Enqueued, c.Claimed-earlier.Claimed
	if !c.Known || !earlier.Known || seconds <= 0 || came < 0 || began < 0 {
		return 0, 0, false
	}
	return float64(came) / seconds, float64(began) / seconds, true
}
