package main

func ofSettlements() []mutant {
	return []mutant{
		{
			name:    "a completion is not bound to the generation",
			promise: "Fenced",
			file:    "gen/complete.sql.go",
			old:     "\n        AND job.lease_generation = held.lease_generation\n",
			new:     "\n",
			folder:  onPostgres,
			test:    "TestFenced_StaleWorkerCannotSettle",
			short:   true,
		},
		{
			name:    "a completion asks for the id of the worker alone",
			promise: "Fenced",
			file:    "gen/complete.sql.go",
			old: `    lease_expires_at = NULL
FROM (
    SELECT
        unnest($1::integer[]) AS partition_bucket,
        unnest($2::uuid[]) AS id,
        unnest($3::bigint[]) AS lease_generation,
        $4::text AS worker_id
) AS held
WHERE job.id = ANY(ARRAY[held.id])
    AND job.partition_bucket = held.partition_bucket
    AND job.lease_generation = held.lease_generation
`,
			new: `    lease_expires_at = NULL
FROM (
    SELECT
        unnest($1::integer[]) AS partition_bucket,
        unnest($2::uuid[]) AS id,
        unnest($3::bigint[]) AS lease_generation,
        $4::text AS worker_id
) AS held
WHERE job.id = ANY(ARRAY[held.id])
`,
			folder: onPostgres,
			test:   "TestFenced_EveryPartOfTheFenceCounts",
		},
		{
			name:    "a retry is not bound to the generation",
			promise: "Fenced",
			file:    "gen/retry.sql.go",
			old: `            unnest($5::text[]) AS error,
            $6::text AS worker_id
    ) AS held
    WHERE job.id = ANY(ARRAY[held.id])
        AND job.partition_bucket = held.partition_bucket
        AND job.lease_generation = held.lease_generation
`,
			new: `            unnest($5::text[]) AS error,
            $6::text AS worker_id
    ) AS held
    WHERE job.id = ANY(ARRAY[held.id])
        AND job.partition_bucket = held.partition_bucket
`,
			folder: onPostgres,
			test:   "TestFenced_StaleWorkerCannotSettle",
		},
		{
			name:    "a failure is not bound to the generation",
			promise: "Fenced",
			file:    "gen/retry.sql.go",
			old: `            unnest($4::text[]) AS error,
            $5::text AS worker_id
    ) AS held
    WHERE job.id = ANY(ARRAY[held.id])
        AND job.partition_bucket = held.partition_bucket
        AND job.lease_generation = held.lease_generation
`,
			new: `            unnest($4::text[]) AS error,
            $5::text AS worker_id
    ) AS held
    WHERE job.id = ANY(ARRAY[held.id])
        AND job.partition_bucket = held.partition_bucket
`,
			folder: onPostgres,
			test:   "TestFenced_StaleWorkerCannotSettle",
		},
		{
			name:    "a release is not bound to the generation",
			promise: "Fenced",
			file:    "gen/retry.sql.go",
			old: `            unnest($6::text[]) AS detail,
            $7::text AS worker_id
    ) AS held
    WHERE job.id = ANY(ARRAY[held.id])
        AND job.partition_bucket = held.partition_bucket
        AND job.lease_generation = held.lease_generation
`,
			new: `            unnest($6::text[]) AS detail,
            $7::text AS worker_id
    ) AS held
    WHERE job.id = ANY(ARRAY[held.id])
        AND job.partition_bucket = held.partition_bucket
`,
			folder: onPostgres,
			test:   "TestFenced_StaleWorkerCannotSettle",
		},
		{
			name:    "a renewal is not bound to the generation",
			promise: "Fenced",
			file:    "gen/renew.sql.go",
			old:     "\n    AND job.lease_generation = held.lease_generation\n",
			new:     "\n",
			folder:  onPostgres,
			test:    "TestFenced_OnlyTheCurrentClaimIsRenewed",
		},
		{
			name:    "a renewal revives a lease that has ended",
			promise: "Fenced",
			file:    "gen/renew.sql.go",
			old:     "\n    AND job.lease_expires_at > now()\n",
			new:     "\n",
			folder:  onPostgres,
			test:    "TestFenced_OnlyTheCurrentClaimIsRenewed",
		},
		{
			name:    "a settlement that touched no row counts as done",
			promise: "Fenced",
			file:    "domain/complete.go",
			old:     "answers[member.position].Err = ErrLeaseLost",
			new:     "answers[member.position].Status = StatusCompleted",
			folder:  onPostgres,
			test:    "TestFenced_StaleWorkerCannotSettle",
		},
		{
			name:    "a settlement that is sent again after a lost reply is told that its lease is lost",
			promise: "Observed complete once",
			file:    "domain/complete.go",
			old:     "!settled && member.Unconfirmed {",
			new:     "!settled && member.Unconfirmed && false {",
			folder:  onPostgres,
			test:    "TestCompleteOnce_RepeatedSettlementAfterALostReplyIsDone",
		},
		{
			name:    "one result that cannot be recorded holds up the others of its batch",
			promise: "Observed complete once",
			file:    "domain/complete.go",
			old:     "half := len(group.members) / 2; half > 0 {",
			new:     "half := len(group.members) / 2; half < 0 {",
			folder:  onPostgres,
			test:    "TestSettle_RefusedResultLeavesTheOthersAlone",
		},
		{
			name:    "the error of a handler is stored as it is",
			promise: "Attempts are bounded",
			file:    "domain/outcome.go",
			old:     "Delay: Backoff(attempts, random), Error: cleanErrorText(err.Error())}",
			new:     "Delay: Backoff(attempts, random), Error: err.Error()}",
			folder:  inDomain,
			test:    "TestOutcomeOf_CutsLongErrors",
		},
		{
			name:    "a job is tried once more than it may be",
			promise: "Attempts are bounded",
			file:    "gen/retry.sql.go",
			old: `            WHEN job.attempts < job.max_attempts THEN 'pending'::holdfast.inbox_status
            ELSE 'dead_letter'::holdfast.inbox_status
        END,
        available_at = now() + held.delay,
        finished_at = CASE WHEN job.attempts < job.max_attempts THEN NULL ELSE now() END,
        finished_by = CASE WHEN job.attempts < job.max_attempts THEN NULL ELSE job.claimed_by END,
`,
			new: `            WHEN job.attempts <= job.max_attempts THEN 'pending'::holdfast.inbox_status
            ELSE 'dead_letter'::holdfast.inbox_status
        END,
        available_at = now() + held.delay,
        finished_at = CASE WHEN job.attempts <= job.max_attempts THEN NULL ELSE now() END,
        finished_by = CASE WHEN job.attempts <= job.max_attempts THEN NULL ELSE job.claimed_by END,
`,
			folder: onPostgres,
			test:   "TestAttemptsAreBounded_SpentJobIsDeadLetteredAndBlocksNobody",
		},
		{
			name:    "a release spends the attempt",
			promise: "Attempts are bounded",
			file:    "gen/retry.sql.go",
			old:     "        attempts = job.attempts - 1,\n",
			new:     "",
			folder:  onPostgres,
			test:    "TestAttemptsAreBounded_ReleaseGivesTheAttemptBack",
		},
	}
}
