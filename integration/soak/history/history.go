// Package history is what a soak writes down: one folder a run, which can be judged again at
// any time. Every file but the manifest holds JSON lines.
//
//	run.json          Run: the manifest, written last
//	client-NAME.jsonl Op: what a process asked for, and what it was told
//	wal.jsonl         Change: what Postgres committed, in its order, by its own log
//	sink.jsonl        Effect: what the protected store accepted and refused, in its order
//	faults.jsonl      Fault: what was done to the processes, the server and the lines
//	final.jsonl       Row: what is in the inbox and in the archive at the end
package history

import "time"

// The files of a run.
const (
	ManifestFile = "run.json"
	WALFile      = "wal.jsonl"
	SinkFile     = "sink.jsonl"
	FaultsFile   = "faults.jsonl"
	FinalFile    = "final.jsonl"
	clientFiles  = "client-*.jsonl"
)

// Run is the manifest of a complete run. A folder without one was cut short.
type Run struct {
	Seed    uint64        `json:"seed"`
	Length  time.Duration `json:"length_ns"` // How long faults were injected.
	Began   time.Time     `json:"began"`
	Ended   time.Time     `json:"ended"`
	Server  string        `json:"server"`   // Which Postgres.
	Lease   time.Duration `json:"lease_ns"` // Of every worker.
	Skipped []Skipped     `json:"skipped"`  // Faults that this machine does not allow.

	// Lines is how many records each file has, by its name.
	Lines map[string]int `json:"lines"`
}

// Skipped is a kind of fault that could not be injected, and so was not shown to be harmless.
type Skipped struct {
	Fault  string `json:"fault"`
	Reason string `json:"reason"`
}

// What a process asks for.
const (
	OpEnqueue  = "enqueue"   // One job, with its transaction's COMMIT.
	OpClaim    = "claim"     // One record a job; one without a job when the reply was lost.
	OpRunBegin = "run_begin" // A handler starts.
	OpRunEnd   = "run_end"   // It returns.
	OpRenew    = "renew"     // One record a claim.
	OpSettle   = "settle"    // One record a claim.
	OpEffect   = "effect"    // A write to the sink.
	OpDrain    = "drain"     // From the order to drain until the worker has left.
	OpRedrive  = "redrive"   // An operator puts a job back.
)

// What a process is told.
const (
	OK         = "ok"
	Duplicate  = "duplicate"   // An enqueue found the job of its key.
	RolledBack = "rolled_back" // An enqueue's transaction was given up on purpose.
	Stale      = "stale"       // The claim is over: holdfast.ErrLeaseLost.
	Refused    = "refused"     // The sink saw a higher token: holdfast.ErrFenced.
	Error      = "error"       // It did not happen.
	Ambiguous  = "ambiguous"   // No answer came: it happened or it did not.
)

// Op is what a process asked for and what it was told. A field that does not belong to the
// operation is left out.
type Op struct {
	Op      string    `json:"op"`
	Process string    `json:"process"` // Its name and which start of it: worker-2.5.
	Begin   time.Time `json:"begin"`   // Before it was sent, by the machine's clock.
	End     time.Time `json:"end"`     // After the answer.
	Outcome string    `json:"outcome,omitempty"`
	Error   string    `json:"error,omitempty"`

	// Marker is what the operation left in the server's log beside its writes, unique in the run.
	// With it an ambiguous enqueue is settled.
	Marker string `json:"marker,omitempty"`

	Job            string `json:"job,omitempty"`
	Queue          string `json:"queue,omitempty"`
	PartitionKey   string `json:"key,omitempty"`
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	Kind           string `json:"kind,omitempty"`

	WorkerID   string `json:"worker,omitempty"`
	Generation int64  `json:"generation,omitempty"`
	Attempt    int    `json:"attempt,omitempty"`
	Verdict    string `json:"verdict,omitempty"`   // Of a settle, and of a run's end: complete, retry, fail or release.
	Status     string `json:"status,omitempty"`    // Of a settle: the job's, as the worker was told.
	Repeated   bool   `json:"repeated,omitempty"`  // Of a settle: it was sent before, without an answer.
	CutShort   bool   `json:"cut_short,omitempty"` // Of a run's end: the context ended before the handler returned.
	Resource   string `json:"resource,omitempty"`  // Of an effect.
}

// Booking is the kind whose handler completes its job with HandleTx, in one transaction with a
// row of Ledger. Its claims that end so have no settle record.
const Booking = "booking"

// What is done to the system, of what every run must show. The kinds of the cuts begin so, and go
// on with what was cut.
const (
	ServerCrash     = "server crash"        // Without a checkpoint; it comes back.
	CutBeforeCommit = "cut before a commit" // The COMMIT never reached the server.
	CutAfterCommit  = "cut after a commit"  // It did, and its reply never came back.
)

// What a change does.
const (
	Insert = "insert"
	Update = "update"
	Delete = "delete"
	Mark   = "mark" // No table: a marker, see Op.Marker.
)

// Where a change is.
const (
	Inbox   = "inbox"
	Archive = "inbox_archive" // Whichever partition.
	Placed  = "placed"        // A producer's own table: a row for each enqueue, in its transaction.
	Ledger  = "ledger"        // A handler's own table: a row for each HandleTx, in its transaction.
)

// Change is one committed change, from the server's log. Changes of one transaction follow
// each other, and transactions stand in the order of their commits.
type Change struct {
	LSN    string    `json:"lsn"` // Of the transaction's commit.
	XID    uint32    `json:"xid"`
	Commit time.Time `json:"commit"` // By the database's clock.
	What   string    `json:"what"`
	Table  string    `json:"table,omitempty"`
	Old    *Row      `json:"old,omitempty"`
	New    *Row      `json:"new,omitempty"`
	Marker string    `json:"marker,omitempty"` // Of a mark, and of a row of placed.
}

// Row is a job as a table shows it. Of a row of ledger it has the id and the generation only.
type Row struct {
	Place          string    `json:"place,omitempty"` // Of the final rows: Inbox or Archive.
	ID             string    `json:"id"`
	Queue          string    `json:"queue,omitempty"`
	PartitionKey   string    `json:"key,omitempty"`
	IdempotencyKey string    `json:"idempotency_key,omitempty"`
	Kind           string    `json:"kind,omitempty"`
	Ordered        bool      `json:"ordered,omitempty"`
	Seq            int64     `json:"seq,omitempty"`
	Status         string    `json:"status,omitempty"`
	Attempts       int       `json:"attempts,omitempty"`
	MaxAttempts    int       `json:"max_attempts,omitempty"`
	Generation     int64     `json:"generation,omitempty"`
	ClaimedBy      string    `json:"claimed_by,omitempty"`
	ClaimedAt      time.Time `json:"claimed_at,omitzero"` // When the transaction of the claim began, by the database's clock.
	LeaseExpiresAt time.Time `json:"lease_expires_at,omitzero"`
	AvailableAt    time.Time `json:"available_at,omitzero"`

	// LastError tells a retry from a reclaim, which leaves it as it is unless it dead-letters. For
	// that each run's error is to differ from the one before, for instance by the generation.
	LastError string `json:"last_error,omitempty"`
}

// Effect is a write that reached the sink, in the order in which the sink committed them.
type Effect struct {
	Resource string `json:"resource"`
	Token    int64  `json:"token"`
	Job      string `json:"job"`
	WorkerID string `json:"worker"`
	Accepted bool   `json:"accepted"`
}

// Fault is what was done to the system.
type Fault struct {
	Kind   string    `json:"kind"`
	Target string    `json:"target,omitempty"` // Which process, line or server.
	Begin  time.Time `json:"begin"`
	End    time.Time `json:"end"`
	Error  string    `json:"error,omitempty"` // It was not injected after all.
	Detail string    `json:"detail,omitempty"`
}
