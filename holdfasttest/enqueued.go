package holdfasttest

import (
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
)

// Job is a job as the database holds it, with its payload decoded.
type Job[T holdfast.Args] struct {
	domain.JobRecord

	// Args is the payload.
	Args T
}

// Enqueued returns the jobs of the kind that T names which wait to be run, due or not, in the
// order of their enqueue, as the transaction or pool sees them.
func Enqueued[T holdfast.Args](tb testing.TB, db holdfast.DBTX) []Job[T] {
	tb.Helper()
	var zero T
	var jobs []Job[T]
	for _, found := range find(tb, db, zero.Kind(), nil) {
		if found.job.Status != pending {
			continue
		}
		job := Job[T]{JobRecord: found.job}
		if err := json.Unmarshal(found.job.Payload, &job.Args); err != nil {
			tb.Fatalf("holdfasttest: job %s of kind %s has a payload that is no %T: %v\n%s", found.job.ID, found.job.Kind, zero, err, found.job.Payload)
		}
		jobs = append(jobs, job)
	}
	return jobs
}

// RequireEnqueued fails the test unless exactly one job waits to be run that has the payload
// and what the options say, and returns it. It reads as the enqueue does:
//
//	holdfasttest.RequireEnqueued(t, tx, SendReceipt{Email: "ada@example.com"}, holdfast.Key("order:9182"))
//
// What no option names may be anything. Payloads are compared as JSON; a job may have other
// headers beside those given; holdfast.In and holdfast.At are compared to the second.
func RequireEnqueued[T holdfast.Args](tb testing.TB, db holdfast.DBTX, args T, options ...holdfast.EnqueueOption) Job[T] {
	tb.Helper()
	payload, err := json.Marshal(args)
	if err != nil {
		tb.Fatalf("holdfasttest: the args are no JSON: %v", err)
	}
	wanted := terms(tb, options)
	found := find(tb, db, args.Kind(), payload)
	matching := matches(found, wanted)
	switch len(matching) {
	case 1:
		return Job[T]{JobRecord: matching[0].job, Args: args}
	case 0:
		tb.Fatalf("holdfasttest: want a job %s to be enqueued, and there is none.%s", describe(args.Kind(), payload, wanted), listing(tb, db, args.Kind(), found, wanted))
	default:
		tb.Fatalf("holdfasttest: want one job %s to be enqueued, and there are %d. If that is meant, look at them with Enqueued.%s",
			describe(args.Kind(), payload, wanted), len(matching), listing(tb, db, args.Kind(), found, wanted))
	}
	panic("unreachable")
}

// RequireNotEnqueued fails the test if a job of the kind that T names waits to be run and is
// as the options say; without options any job of the kind fails it. It takes no payload, with
// which a slip of the pen would pass the test.
func RequireNotEnqueued[T holdfast.Args](tb testing.TB, db holdfast.DBTX, options ...holdfast.EnqueueOption) {
	tb.Helper()
	var zero T
	wanted := terms(tb, options)
	found := find(tb, db, zero.Kind(), nil)
	if matching := matches(found, wanted); len(matching) > 0 {
		tb.Fatalf("holdfasttest: want no job %s to be enqueued, and there is.%s", describe(zero.Kind(), nil, wanted), listing(tb, db, zero.Kind(), found, wanted))
	}
}

func terms(tb testing.TB, options []holdfast.EnqueueOption) domain.EnqueueTerms {
	tb.Helper()
	wanted, err := domain.TermsOf(options...)
	if err != nil {
		tb.Fatalf("holdfasttest: no job can be enqueued like that: %v", err)
	}
	return wanted
}

// candidate is a job of the kind asked for.
type candidate struct {
	job  domain.JobRecord
	same bool // Its payload is the one asked for.
}

// find returns all jobs of a kind, whatever their state. Payload nil: any is the one asked for.
func find(tb testing.TB, db holdfast.DBTX, kind string, payload json.RawMessage) []candidate {
	tb.Helper()
	if kind == "" {
		tb.Fatal("holdfasttest: the zero value of the type names no kind: use one whose Kind method returns a constant")
	}
	rows, _ := db.Query(tb.Context(), `
		SELECT
			job.id::text,
			$2::text = '' OR job.payload = NULLIF($2::text, '')::jsonb AS same
		FROM holdfast.jobs AS job
		WHERE job.kind = $1
		ORDER BY job.seq`, kind, string(payload))
	type row struct {
		ID   string
		Same bool
	}
	listed, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	if err != nil {
		tb.Fatalf("holdfasttest: look for jobs of kind %s: %v", kind, err)
	}
	found := make([]candidate, 0, len(listed))
	for _, each := range listed {
		id, err := domain.ParseJobID(each.ID)
		if err != nil {
			tb.Fatalf("holdfasttest: %v", err)
		}
		job, err := domain.FindJob(tb.Context(), db, id)
		if err != nil {
			tb.Fatalf("holdfasttest: %v", err)
		}
		found = append(found, candidate{job: job, same: each.Same})
	}
	return found
}
