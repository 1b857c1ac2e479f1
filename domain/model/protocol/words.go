package protocol

import (
	"fmt"
	"strings"
)

// kind is what a step belongs to.
type kind uint8

const (
	nothing kind = iota
	claiming
	lockingLane
	claimingLane
	reclaiming
	renewing
	completing
	retrying
	failing
	releasing
	enqueuing
	redriving
	cancelling
	freeing
	purging
	drainingWorker
	declaringDead
	beating
	listingHeld
	leaving
	crashing
	failingOver
	ticking
)

// kinds tell what each kind of step is called, with %s for a worker or a housekeeper, and for
// which statements in queries/ it stands.
var kinds = [...]struct{ words, statements string }{
	nothing:        {},
	claiming:       {"worker %s claims", "ClaimJobs"},
	lockingLane:    {"worker %s begins a claim of lanes", "ListLaneBuckets BeginLanes LockLanes"},
	claimingLane:   {"worker %s claims from a lane", "ClaimLanes CommitLanes"},
	reclaiming:     {"housekeeper %s reclaims", "OldestClaim ReclaimExpiredLeases"},
	renewing:       {"worker %s renews", "RenewLeases"},
	completing:     {"worker %s completes", "LockClaim CompleteJobs CompleteAndKeepJobs CompleteAndDropJobs"},
	retrying:       {"worker %s retries", "RetryJobs"},
	failing:        {"worker %s fails", "FailJobs"},
	releasing:      {"worker %s releases", "ReleaseJobs"},
	enqueuing:      {"an enqueue commits:", "EnqueueJob EnqueuePlainJob EnqueueJobs EnqueuePlainJobs"},
	redriving:      {"a person redrives", "RedriveJobs"},
	cancelling:     {"a person cancels", "CancelJobs"},
	freeing:        {"a person releases", "ReleaseClaims"},
	purging:        {"a person purges", "PurgeJobs"},
	drainingWorker: {"worker %s is drained", "DrainWorker"},
	declaringDead:  {"worker %s is marked dead", "MarkStaleWorkersDead EvictWorker"},
	beating:        {"a heartbeat of worker %s is answered", "BeatWorker"},
	listingHeld:    {"worker %s, told to stop, finds that it holds nothing", "ListHeldClaims CountHeldJobs"},
	leaving:        {"worker %s leaves", "LeaveWorker"},
	crashing:       {"worker %s crashes", ""},
	failingOver:    {"a failover loses the claim of", ""},
	ticking:        {"a tick goes by", ""},
}

// stage is how far a transaction comes with a step.
type stage uint8

const (
	sees stage = iota
	skips
	locks
	draws
	commits
	refused
	breaks
)

var stages = [...]string{
	sees:    "its snapshot has",
	skips:   "skips, or finds changed,",
	locks:   "locks and rechecks",
	draws:   "draws a token for",
	commits: "commits",
	refused: "is refused",
	breaks:  "is rolled back",
}

// step is one step of one of those who act. A job of -1 is none.
type step struct {
	kind  kind
	stage stage
	who   int8 // A worker or a housekeeper.
	job   int8
	token uint8
	set   uint8 // Jobs, where there may be several.
}

// whose tells to whom a transaction belongs.
func whose(i int) int8 { return int8(i % maxWorkers) }

// String says the step in words, such as "worker A completes: locks and rechecks job 1, token 2".
func (s step) String() string {
	var said strings.Builder
	said.WriteString(strings.ReplaceAll(kinds[s.kind].words, "%s", string('A'+rune(s.who))))
	switch {
	case s.kind == lockingLane && s.stage == locks:
		said.WriteString(": locks the bucket")
	case s.kind < enqueuing:
		said.WriteString(": " + stages[s.stage])
	}
	for j := range maxJobs {
		if j == int(s.job) || s.set&bit(j) != 0 {
			fmt.Fprintf(&said, " job %d", j+1)
		}
	}
	if s.token != 0 {
		fmt.Fprintf(&said, ", token %d", s.token)
	}
	return said.String()
}
