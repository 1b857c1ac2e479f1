package domain

// Which duties come together.
var (
	anyone  = []Duty{DutyProducer, DutyWorker, DutyOperator, DutyViewer} // The statement needs next to nothing.
	adding  = []Duty{DutyProducer, DutyWorker}
	naming  = []Duty{DutyProducer, DutyWorker, DutyOperator} // A queue for the first time.
	running = []Duty{DutyWorker}
	acting  = []Duty{DutyWorker, DutyOperator}
	mending = []Duty{DutyOperator}
	looking = []Duty{DutyWorker, DutyOperator, DutyViewer}
	owning  []Duty
)

// mayRun says which duties let a role run each statement. Rights are to tables and columns, so a
// duty that needs them for one statement can also run others. docs/roles.md shows it.
var mayRun = map[string][]Duty{
	"ArchiveCompletedJobs": running,
	"CreateArchiveDays":    running,
	"DropArchiveDays":      running,
	"DeleteExpiredKeys":    running,
	"DeleteOldMarks":       running,
	"DeleteUnusedFences":   running,
	"DeleteOldEvents":      running,

	"ClaimJobs": running,

	"LockClaim":           acting,
	"CompleteJobs":        running,
	"CompleteAndKeepJobs": running,
	"CompleteAndDropJobs": acting,

	"GetServer":               anyone,
	"ListSettings":            anyone,
	"ListHorizonHolders":      anyone,
	"GetInboxCondition":       anyone,
	"ListUnservedQueues":      looking,
	"FindDueJob":              looking,
	"ListOrphanBuckets":       looking,
	"CountOverdueLeases":      looking,
	"CountOverdueCompletions": looking,
	"CountDeadKeys":           looking,
	"FindLiveWorker":          looking,

	"DrainWorker":    acting,
	"LeaveWorker":    running,
	"CountHeldJobs":  looking,
	"ListHeldClaims": looking,

	"EnqueueJob":       adding,
	"EnqueuePlainJob":  adding,
	"EnqueueJobs":      adding,
	"EnqueuePlainJobs": adding,
	"EnsureQueue":      naming,

	"RecordLostLeases": acting,
	"ListJobEvents":    looking,
	"ListEvents":       looking,

	"GuardResource": running,

	"MarkHandled": running,

	"TryHousekeeping": anyone,

	"ListLaneBuckets": looking,
	"BeginLanes":      anyone,
	"LockLanes":       anyone,
	"CommitLanes":     anyone,
	"ClaimLanes":      running,

	"GetMeta":             anyone,
	"AdvanceEpoch":        running,
	"PlanByIndex":         anyone,
	"PlanInOrder":         anyone,
	"ReadLag":             anyone,
	"PlanForAnyArguments": anyone,

	"CancelJobs":    acting,
	"ReleaseClaims": acting,
	"RedriveJobs":   mending,
	"PurgeJobs":     acting,
	"EvictWorker":   acting,

	"ExamineJobs":     looking,
	"NextDeadKind":    looking,
	"CollectDeadJobs": looking,
	"CountLaterJobs":  looking,

	"SetQueue":    mending,
	"CreateQueue": mending,
	"PauseQueue":  mending,
	"GetQueue":    anyone,
	"ListQueues":  anyone,

	"OldestClaim":          looking,
	"ReclaimExpiredLeases": acting,

	"RenewLeases": acting,

	"RetryJobs":   acting,
	"FailJobs":    acting,
	"ReleaseJobs": acting,

	"ListRoles":             looking,
	"ListMissingPrivileges": looking,
	"CreateRoles":           owning,
	"GrantRole":             owning,
	"GrantRoles":            owning,
	"RevokeRole":            owning,

	"GetJob":           acting,
	"ListJobStates":    anyone,
	"OldestPendingJob": looking,
	"ListWorkers":      looking,
	"SampleKeys":       looking,
	"SampleLanes":      looking,
	"GetStanding":      looking,
	"GetLane":          looking,
	"CountJobsBefore":  looking,
	"GetWorker":        looking,
	"ListWorkerClaims": looking,

	"CountReadyJobs":    looking,
	"CountFutureJobs":   looking,
	"CountLaneJobs":     looking,
	"CountRetryingJobs": looking,
	"CountDeadJobs":     looking,
	"CountClaims":       looking,
	"CountKeptJobs":     looking,
	"CountArrivals":     looking,
	"CountCompletions":  looking,
	"ListPublishedJobs": acting,
	"LatestMark":        running,
	"ReadCounters":      anyone,

	"GroupDeadByError":       looking,
	"CountDeadLettersPerKey": looking,
	"ListDeadJobs":           looking,
	"ListDeadKeyHolders":     looking,

	"ListKeyJobs": looking,

	"ListPendingJobs":  looking,
	"ListLaneJobs":     looking,
	"ListRetryingJobs": looking,
	"ListClaims":       looking,
	"ListKeptJobs":     looking,
	"ListArchivedJobs": looking,
	"ListNewestJobs":   looking,

	"ArmWake":           running,
	"DisarmWake":        running,
	"DisarmDeadWorkers": running,
	"SubscribeToRings":  anyone,
	"SubscribeToProbes": anyone,
	"SendProbe":         anyone,
	"LookAround":        looking,

	"JoinWorker":           running,
	"BeatWorker":           running,
	"ListLiveWorkers":      looking,
	"ListMembers":          looking,
	"MarkStaleWorkersDead": acting,
	"DeleteDeadWorkers":    running,
}

// MayRun returns the duties that let a role run a statement, by its name in queries/; none: only
// the owner of the schema may. known is false when there is no such statement.
func MayRun(statement string) (duties []Duty, known bool) {
	duties, known = mayRun[statement]
	return duties, known
}
