package judge

// promise is one of docs/guarantees.md, by its name there, with the sentence that a run breaks.
type promise struct {
	name     string
	sentence string
}

// The promises that a run can break.
var (
	kept         = &promise{"Kept", "Once the enqueuing COMMIT returned, the job stays until it is completed and its queue's retention has passed, or a person deletes it"}
	together     = &promise{"Together", "The job exists if and only if the caller's transaction committed."}
	oncePerKey   = &promise{"Once per key", "Within the dedupe window one (queue, idempotency key) is one job, however often it is enqueued; every caller gets the same id."}
	fenced       = &promise{"Fenced", "Only the current claim can renew or settle a job; anyone else changes nothing and is told `ErrLeaseLost`."}
	completeOnce = &promise{"Observed complete once", "A job becomes completed at most once."}
	comesBack    = &promise{"Comes back", "a dead worker's jobs are reclaimed within the lease plus the housekeeping interval, and can be claimed after their backoff"}
	neverEarly   = &promise{"Never taken early", "No lease is reclaimed before its deadline by the database's clock, whatever a worker's clock or heartbeat says"}
	inOrder      = &promise{"In order, if you ask", "On an ordered queue the claims of one partition key never overlap, and follow `seq` among the jobs whose enqueue had committed."}
	tokensGrow   = &promise{"Tokens only grow", "A generation is never given to two claims, of any job, and a claim that began after another was settled or reclaimed has a larger one."}
	bounded      = &promise{"Attempts are bounded", "`attempts` counts the claims less the refunds (snooze, release, unknown kind) and never passes `max_attempts` between resets by an operator"}
	nothingLeft  = &promise{"Leaves nothing behind", "After a drain returns nil, the worker holds no job"}
	effects      = &promise{"Effects can be fenced", "A store that uses the fence helper (`holdfast.Guard`) never accepts a lower token after a higher one."}
	whoMay       = &promise{"Who may touch a job", "a job moves only as the table of this section says, and has a holder and a lease exactly while it is being processed"}
)

// rule is how a promise is checked. Each of its functions reports whether there was something
// to check; those are counted, because 0 violations of 0 shows nothing.
type rule struct {
	promise *promise
	move    func(*judge, *move) bool         // Of each change of a job, as Postgres committed it.
	end     func(*judge, *transaction) bool  // Of each transaction, after its changes.
	claim   func(*judge, int64, *claim) bool // Of each claim, with what became of it.
	asked   func(*judge, *asked) bool        // Of each enqueue.
	job     func(*judge, *job) bool          // Of each job, at the end.
	effect  func(*judge, *effect) bool       // Of each write to the sink.
	drain   func(*judge, *drain) bool        // Of each drain that ended well.
}

// allRules are the rules of a judgement, in the order of docs/guarantees.md.
var allRules = []rule{
	{promise: kept, asked: keptAsked, job: keptJob},
	{promise: together, end: togetherTx, asked: togetherAsked},
	{promise: oncePerKey, move: onceInserted, asked: onceAsked},
	{promise: fenced, move: leaseStillRan, claim: fencedClaim},
	{promise: completeOnce, move: completedOnce, claim: completedAfterRun},
	{promise: comesBack, move: claimedWhenDue},
	{promise: neverEarly, claim: neverReclaimedEarly},
	{promise: inOrder, move: lanesKeepOrder},
	{promise: tokensGrow, move: tokenGrew},
	{promise: bounded, move: attemptsCounted, claim: startsCounted},
	{promise: nothingLeft, move: goneClaimsNothing, drain: drainHeldNothing},
	{promise: effects, effect: tokenHolds, claim: effectsArrived},
	{promise: whoMay, move: legalMove, job: redrivenAsTold},
}
