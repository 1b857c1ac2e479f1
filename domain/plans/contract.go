// Package plans is the contract between the hot statements and the planner: which indexes each
// of them may use, whatever the statistics say, and a check that asks a server whether it
// keeps to that.
//
// A statement is hot when it runs for every job or every few seconds, or when it holds up one
// that does: claims, renewals, settlements, enqueues, what a handler calls, heartbeats, and
// the batches of housekeeping. What a person calls is not in the contract, and neither are
// housekeeping's statements over tables with a row for each worker. Those of a person have a
// contract of their own, Support, and a bound on what they read.
package plans

import (
	"context"

	"github.com/holdfast-pg/holdfast/domain"
)

// Statement is one hot statement and how it may find its rows.
type Statement struct {
	// Name is that of the statement in queries/.
	Name string

	// Sent is how the product sends it, which decides how it is planned.
	Sent Way

	// Set says that it takes a set or a batch, of any size.
	Set bool

	// Indexes are the ways it may take to the tables that grow. To the others, which have a
	// row for each queue, worker or both, any way is short.
	Indexes []string

	// Walks are those of them that it may walk from end to end.
	Walks []string

	// Pages are the tables that grow of which it may read a range of pages.
	Pages []string

	// Sorts says which rows of a table that grows it may sort; "" for none.
	Sorts string

	// MaxCost is the highest cost that the server may expect; 0 stands for 50,000.
	MaxCost float64

	// Call sends it, with a sample set of the size given, through the generated method.
	Call func(ctx context.Context, db domain.DBTX, size int) error
}

// Way is how a statement reaches the server.
type Way int

const (
	// ByIndex is on a queue's connection behind PlanByIndex. It gets one plan for all arguments,
	// which the server keeps where the driver keeps it prepared.
	ByIndex Way = iota

	// InOrder is on the caller's connection behind PlanInOrder. It is planned on each call.
	InOrder

	// Cached is on a connection with nothing in front. The driver may keep it prepared there, and
	// the server then one plan for all arguments.
	Cached
)

// generic tells for which plans a statement is to be explained: those for its arguments, and the
// one for any.
func (w Way) generic() []bool {
	switch w {
	case ByIndex:
		return []bool{true}
	case Cached:
		return []bool{false, true}
	default:
		return []bool{false}
	}
}

// storyCost is the highest cost of a statement that asks for an event of each job of a set.
// Without statistics every 200th event is taken for one of each job; they are a handful.
const storyCost = 1_000_000

// Contract returns every hot statement, in the order of a job's life.
func Contract() []Statement {
	inbox := []string{"inbox_pkey"}
	archive := []string{"inbox_pkey", "inbox_archive_id_idx"}
	keys := []string{"idempotency_keys_pkey"}
	claim := []string{"inbox_claim_idx"}
	lane := []string{"inbox_lane_idx"}
	fences := []string{"fences_pkey"}
	events := []string{"events_pkey"}
	return []Statement{
		{Name: "EnqueueJob", Sent: Cached, Indexes: keys, Call: enqueueJob},
		{Name: "EnqueuePlainJob", Sent: Cached, Call: enqueuePlainJob},
		{Name: "EnqueuePlainJobs", Sent: Cached, Set: true, Call: enqueuePlainJobs},
		{Name: "EnqueueJobs", Sent: Cached, Set: true, Indexes: keys, Call: enqueueJobs},
		{Name: "BeatWorker", Sent: Cached, Call: beatWorker},
		{Name: "ListMembers", Sent: Cached, Call: listMembers},
		{Name: "ArmWake", Sent: Cached, Call: armWake},
		{Name: "DisarmWake", Sent: Cached, Call: disarmWake},
		{Name: "LookAround", Sent: Cached, Set: true, Indexes: []string{"inbox_claim_idx", "inbox_lane_idx", "queues_pkey"}, Call: lookAround},
		ClaimJobs(domain.ClaimRequest{}),
		{Name: "ListLaneBuckets", Sent: ByIndex, Set: true, Indexes: lane, Call: listLaneBuckets},
		{
			Name: "ClaimLanes", Sent: ByIndex, Set: true, Call: claimLanes,
			Indexes: []string{"inbox_lane_idx", "inbox_lane_processing_idx", "inbox_pkey"},
		},
		{Name: "MarkHandled", Sent: Cached, Indexes: []string{"handled_pkey"}, Call: markHandled},
		{Name: "GuardResource", Sent: Cached, Indexes: fences, Call: guardResource},
		{Name: "RenewLeases", Sent: ByIndex, Set: true, Indexes: inbox, Call: renewLeases},
		{Name: "LockClaim", Sent: Cached, Indexes: inbox, Call: lockClaim},
		{Name: "CompleteJobs", Sent: ByIndex, Set: true, Indexes: inbox, Call: completeJobs},
		{Name: "CompleteAndKeepJobs", Sent: ByIndex, Set: true, Indexes: inbox, Call: completeAndKeepJobs},
		{Name: "CompleteAndDropJobs", Sent: ByIndex, Set: true, Indexes: inbox, Call: completeAndDropJobs},
		{Name: "RetryJobs", Sent: ByIndex, Set: true, Indexes: inbox, Call: retryJobs},
		{Name: "FailJobs", Sent: ByIndex, Set: true, Indexes: inbox, Call: failJobs},
		{
			Name: "ReleaseJobs", Sent: ByIndex, Set: true, Call: releaseJobs,
			Indexes: []string{"inbox_pkey", "events_job_idx"}, MaxCost: storyCost,
		},
		{
			Name: "RecordLostLeases", Sent: ByIndex, Set: true, Call: recordLostLeases,
			Indexes: []string{"inbox_pkey", "inbox_archive_id_idx", "events_job_idx"}, MaxCost: storyCost,
		},
		{Name: "ListJobStates", Sent: Cached, Set: true, Indexes: archive, Sorts: "the jobs of the set", Call: listJobStates},
		{
			Name: "ListHeldClaims", Sent: ByIndex, Set: true, Call: listHeldClaims,
			Indexes: []string{"inbox_processing_idx"}, Sorts: "the claims of one worker",
		},
		{Name: "OldestClaim", Sent: ByIndex, Indexes: []string{"inbox_processing_idx"}, Call: oldestClaim},
		{
			Name: "ReclaimExpiredLeases", Sent: ByIndex, Set: true, Call: reclaimExpiredLeases,
			Indexes: []string{"inbox_processing_idx", "inbox_pkey"}, Sorts: "claims whose lease has ended",
		},
		{
			Name: "ArchiveCompletedJobs", Sent: ByIndex, Set: true, Call: archiveCompletedJobs,
			Indexes: []string{"inbox_completed_idx", "inbox_pkey"}, Sorts: "jobs whose time in the inbox has passed",
		},
		{
			Name: "DeleteExpiredKeys", Sent: ByIndex, Set: true, Call: deleteExpiredKeys, Sorts: "what has expired",
			Indexes: []string{"idempotency_keys_expiry_idx", "idempotency_keys_pkey"}, Walks: keys,
		},
		{
			Name: "DeleteOldMarks", Sent: ByIndex, Set: true, Call: deleteOldMarks, Sorts: "what has expired",
			Indexes: []string{"handled_expiry_idx", "handled_pkey", "inbox_pkey"}, Walks: []string{"handled_pkey"},
			// Without statistics a third of all marks is taken for old, and the job of each looked up.
			MaxCost: 1_000_000,
		},
		{Name: "DeleteUnusedFences", Sent: ByIndex, Set: true, Indexes: fences, Walks: fences, Call: deleteUnusedFences},
		{Name: "DeleteOldEvents", Sent: ByIndex, Set: true, Indexes: events, Walks: events, Call: deleteOldEvents, Sorts: "what has expired"},
		{Name: "OldestPendingJob", Sent: Cached, Indexes: claim, Call: oldestPendingJob},
	}
}
