package main

func ofLanes() []mutant {
	return []mutant{
		{
			name:    "lanes are claimed without the lock of their bucket",
			promise: "In order, if you ask",
			file:    "gen/lane.sql.go",
			old:     "WHERE pg_try_advisory_xact_lock(hashtext('holdfast.lane:' || $2::text), bucket.number)",
			new:     "WHERE $2::text IS NOT NULL",
			folder:  onPostgres,
			test:    "TestInOrder_QueuesDoNotBlockEachOther",
			short:   true,
		},
		{
			name:    "buckets are locked, and those claimed too that another claim has",
			promise: "In order, if you ask",
			file:    "gen/lane.sql.go",
			old: `    WHERE given.number = ANY(string_to_array(current_setting('holdfast.lanes', true), ',')::integer[])
        AND EXISTS (SELECT FROM served)`,
			new:    `    WHERE EXISTS (SELECT FROM served)`,
			folder: onPostgres,
			test:   "TestInOrder_QueuesDoNotBlockEachOther",
		},
		{
			name:    "heads are chosen by what was there before the locks",
			promise: "In order, if you ask",
			file:    "gen/lane.sql.go",
			old:     "BEGIN ISOLATION LEVEL READ COMMITTED\n",
			new:     "BEGIN ISOLATION LEVEL REPEATABLE READ\n",
			folder:  onPostgres,
			test:    "TestInOrder_ChoiceSeesWhatWasCommittedBeforeTheLocks",
		},
		{
			name:    "a lane counts as free while a job of it runs",
			promise: "In order, if you ask",
			file:    "gen/lane.sql.go",
			old:     "                    WHERE sibling.status = 'processing'\n",
			new:     "                    WHERE sibling.status = 'failed'\n",
			folder:  onPostgres,
			test:    "TestInOrder_OneJobOfALaneAtATime",
		},
		{
			name:    "a job that waits for its retry lets those behind it pass",
			promise: "In order, if you ask",
			file:    "gen/lane.sql.go",
			old:     "                    AND job.partition_key > walk.partition_key\n",
			new:     "                    AND job.partition_key > walk.partition_key\n                    AND job.available_at <= now()\n",
			folder:  onPostgres,
			test:    "TestInOrder_RetryHoldsItsLane",
		},
		{
			name:    "the head of a lane is passed over while somebody has it locked",
			promise: "In order, if you ask",
			file:    "gen/lane.sql.go",
			old: `                    walk.lap AS lap
                FROM holdfast.inbox AS job
`,
			new: `                    walk.lap AS lap
                FROM (
                    SELECT unlocked.*
                    FROM holdfast.inbox AS unlocked
                    WHERE unlocked.status = 'pending'
                        AND unlocked.ordered
                        AND unlocked.queue = $1::text
                        AND unlocked.partition_bucket = walk.partition_bucket
                        AND unlocked.partition_key > walk.partition_key
                    ORDER BY
                        unlocked.partition_key,
                        unlocked.seq
                    LIMIT 1
                    FOR UPDATE SKIP LOCKED
                ) AS job
`,
			folder: onPostgres,
			test:   "TestInOrder_LockedHeadDoesNotLetTheSecondPass",
		},
		{
			name:    "a lane follows the clock in place of seq",
			promise: "In order, if you ask",
			file:    "gen/lane.sql.go",
			old: `                    AND job.partition_key > walk.partition_key
                ORDER BY
                    job.partition_key,
                    job.seq
`,
			new: `                    AND job.partition_key > walk.partition_key
                ORDER BY
                    job.partition_key,
                    job.created_at
`,
			folder: onPostgres,
			test:   "TestInOrder_SeqDecidesThoughTheClockWentBack",
		},
	}
}
