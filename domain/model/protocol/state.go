package protocol

// The size of the world. Time goes by in ticks, and only differences of times are kept, so
// that the states are finitely many.
const (
	maxJobs      = 2
	maxWorkers   = 2
	maxKeepers   = 2
	leaseTicks   = 2
	backoffTicks = 1
)

// Bounds say what is explored.
type Bounds struct {
	Jobs        int
	Keepers     int // Housekeepers.
	MaxAttempts [maxJobs]int8
	Patience    int8 // How many ticks a transaction may see go by, as if a timeout ended it then.
	Releases    int8 // How often each job may be given back with its attempt refunded.
	Redrives    int8 // How often a person puts a dead job back, in all.
	Orders      int8 // How often a person cancels, releases or purges a job, in all.
	Lane        bool // The jobs are one lane of an ordered queue, and are enqueued as the world goes.
	Failovers   int8 // How often the newest claim is lost by an asynchronous failover.
	Departs     bool // The first worker may be drained, declared dead, or crash. The other lives.
	Fault       Fault
}

// Fault is a mistake planted in the protocol, to see that it is found.
type Fault uint8

// The faults. Most of them were seen in job queues that are in use.
const (
	NoFault                  Fault = iota
	ClaimWithoutRecheck            // Candidates are read without a lock, then updated by id.
	TokenBeforeLock                // A claim draws its tokens with its snapshot.
	TokenPerJob                    // The token counts the claims of its job, and a redrive resets it.
	LaneGuardInSnapshot            // The guard of a lane is NOT EXISTS (processing sibling) in the claim's snapshot.
	LaneTakesSeveral               // The same, and a claim takes several jobs of a key.
	LaneLockWithChoice             // The bucket is locked by the statement that chooses the head.
	SettleByWorker                 // Renewing and settling compare the worker only.
	RenewsEnded                    // A renewal does not ask whether the lease has ended.
	SettleKeepsHolder              // A completed job keeps its holder.
	BeatRevives                    // A heartbeat sets the worker alive.
	ReclaimByID                    // Ended leases are read without a lock, then updated by id while processing.
	ReclaimForgetsMaximum          // A reclaimed job is pending again, whatever its attempts.
	ReclaimLeavesLastAttempt       // A reclaim takes only jobs with attempts left.
	EpochNotRaised                 // After a failover that lost a claim, its token is drawn again.
	LeaveBesideClaim               // A worker leaves though a claim of its own still runs on the server.
	ReleaseKeepsHolder             // A claim that a person releases keeps its holder.
)

// status is that of a job; absent is one whose enqueue has not committed.
type status uint8

const (
	absent status = iota
	pending
	processing
	completed
	failed
	deadLetter
)

// job is a row of the inbox as it was committed last, and what its claims left in the memories
// of workers.
type job struct {
	status    status
	holder    uint8 // The worker's number from 1 on; 0 is nobody.
	token     uint8 // Of the last claim.
	attempts  int8
	released  int8
	deadline  int8   // Of the lease, in ticks from now; down to the least that can matter.
	available int8   // In ticks from now; the same.
	believed  uint32 // Which worker was given which token: two bits a token. Nobody forgets.
}

func (j *job) isTerminal() bool { return j.status >= completed }

// believer is the worker, from 1 on, that was given a token, or 0.
func (j *job) believer(token uint8) uint8 { return uint8(j.believed>>(2*token)) & 3 }

// tokenBefore is the token of the claim before the last, or 0.
func (j *job) tokenBefore() uint8 {
	for token := j.token - 1; token > 0; token-- {
		if j.believer(token) != 0 {
			return token
		}
	}
	return 0
}

// free takes a job from its holder.
func (j *job) free(to status, available int8) {
	j.status, j.holder, j.deadline, j.available = to, 0, 0, available
}

// txn is a transaction that runs on the server: of a claim, a settlement or a reclaim. Each is
// one statement, but for the claim of lanes. What it writes is seen when it commits.
type txn struct {
	kind   kind
	age    int8           // Ticks since now(), which is when it began.
	seen   uint8          // Jobs that its snapshot chose and it has not come to.
	locked uint8          // Jobs whose rows it has locked and rechecked.
	drawn  uint8          // Of those, the jobs that have their tokens.
	tokens [maxJobs]uint8 // The tokens of a claim; of a settlement, the one that it compares.
	bucket bool           // It has the lock of the lane's bucket.
	chosen bool           // Its snapshot was taken.
	ahead  uint8          // Jobs that were enqueued when it began, and have not ended since.
}

// life is what a worker knows of itself.
type life uint8

const (
	running  life = iota
	stopping      // Told to drain, or that it is dead: it begins no claim.
	emptied       // Its list of claims still held came back empty.
	left          // Its drain returned nil.
	crashed
)

type worker struct {
	life life
	// registered is what the registry says. It is a hint to others, never a reason to take a job.
	registered registration
}

type registration uint8

const (
	alive registration = iota
	draining
	dead
)

// state is all that the steps depend on. It is comparable.
type state struct {
	jobs     [maxJobs]job
	workers  [maxWorkers]worker
	txns     [2*maxWorkers + maxKeepers]txn // Claims, settlements, reclaims.
	sequence uint8                          // The last token drawn.

	redrives, orders, failovers int8 // How often they happened.
}

// settlement and reclaim are the places of such transactions in txns; a claim's is its worker.
func settlement(worker int) int { return maxWorkers + worker }
func reclaim(keeper int) int    { return 2*maxWorkers + keeper }

// isLocked tells whether a transaction has the row's lock.
func (s *state) isLocked(j int) bool {
	for i := range s.txns {
		if s.txns[i].locked&bit(j) != 0 {
			return true
		}
	}
	return false
}

func (s *state) isDue(j int, age int8) bool {
	return s.jobs[j].status == pending && s.jobs[j].available <= -age
}

func (s *state) isExpired(j int, age int8) bool {
	return s.jobs[j].status == processing && s.jobs[j].deadline < -age
}

func (s *state) holdsAny(w int) bool {
	return s.filter(func(j int) bool { return s.jobs[j].holder == uint8(w+1) }) != 0
}

// filter returns the jobs for which a condition holds.
func (s *state) filter(condition func(j int) bool) (set uint8) {
	for j := range s.jobs {
		if condition(j) {
			set |= bit(j)
		}
	}
	return set
}

func bit(j int) uint8 { return 1 << j }
