package main

func ofHousekeeping() []mutant {
	return []mutant{
		{
			name:    "a reclaim does not ask whether the lease has ended",
			promise: "Never taken early",
			file:    "gen/reclaim.sql.go",
			old:     "\n        AND job.lease_expires_at < now()\n",
			new:     "\n",
			folder:  onPostgres,
			test:    "TestNeverTakenEarly_RunningLeaseIsNotReclaimed",
			short:   true,
		},
		{
			name:    "ended leases are chosen first and reclaimed by id afterwards",
			promise: "Comes back",
			file:    "gen/reclaim.sql.go",
			old:     "\n    FOR UPDATE SKIP LOCKED\n",
			new:     "\n",
			folder:  onPostgres,
			test:    "TestComesBack_HousekeepersAtOnceReclaimEachJobOnce",
		},
		{
			name:    "the backoff overflows at the 31st attempt",
			promise: "Comes back",
			file:    "db/migrations/00001_create_schema.sql",
			old:     "SELECT least(power(2, least(attempts, 12)), 3600)",
			new:     "SELECT least(power(2, attempts)::integer, 3600)",
			folder:  onPostgres,
			test:    "TestComesBack_ManyAttemptsDoNotBreakTheBackoff",
		},
		{
			name:    "house is kept between claims, and so not while every slot is taken",
			promise: "Comes back",
			file:    "worker/housekeeping.go",
			old:     "\ts.every(ctx, s.Housekeeping, func(ctx context.Context) {\n",
			new:     "\ts.every(ctx, s.Housekeeping, func(ctx context.Context) {\n\t\tif s.stock.room(0) == 0 {\n\t\t\treturn\n\t\t}\n",
			folder:  inWorker,
			test:    "TestComesBack_ThoughEverySlotOfTheHousekeeperIsTaken",
		},
		{
			name:    "an election that is never won is waited for",
			promise: "Comes back",
			file:    "worker/housekeeping.go",
			old:     "if lost >= electionsLost && ctx.Err() == nil {",
			new:     "if lost < 0 && ctx.Err() == nil {",
			folder:  inWorker,
			test:    "TestHousekeeping_LostElectionsAreNotWaitedForForEver",
		},
		{
			name:    "what is copied to the archive and what is deleted are chosen apart",
			promise: "Kept",
			file:    "gen/archive.sql.go",
			old: `moved AS (
    DELETE FROM holdfast.inbox AS job
    USING due
    WHERE job.id = ANY(ARRAY[due.id])
        AND job.partition_bucket = due.partition_bucket
    RETURNING
`,
			new: `moved AS (
    SELECT job.*
    FROM holdfast.inbox AS job
    JOIN due ON due.id = job.id
),
deleted AS (
    DELETE FROM holdfast.inbox AS job
    USING holdfast.queues AS queue
    WHERE queue.name = job.queue
        AND job.status = 'completed'
        AND job.completed_at < now() - queue.keep_for
    RETURNING
`,
			folder: onPostgres,
			test:   "TestKept_CompletedJobsStayForTheirTimeAndAreThenArchived",
		},
		{
			name:    "keys are forgotten within their window",
			promise: "Once per key",
			file:    "gen/archive.sql.go",
			old:     "    WHERE keys.expires_at < now()\n",
			new:     "",
			folder:  onPostgres,
			test:    "TestOncePerKey_KeysExpireWithTheirWindow",
		},
	}
}
