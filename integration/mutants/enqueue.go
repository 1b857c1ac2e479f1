package main

func ofEnqueue() []mutant {
	return []mutant{
		{
			name:    "an idempotency key stands for its job though its window has passed",
			promise: "Once per key",
			file:    "gen/enqueue.sql.go",
			old:     "\n        AND entry.expires_at > now()\n",
			new:     "\n",
			folder:  onPostgres,
			test:    "TestOncePerKey_ExpiredKeyRacedByManyMakesOneNewJob",
		},
		{
			name:    "a key that another transaction is just taking answers with no job",
			promise: "Once per key",
			file:    "gen/enqueue.sql.go",
			old: `    -- DO NOTHING would give a racing duplicate no id at all.
    ON CONFLICT (queue, key) DO UPDATE
    SET
        job_id = CASE WHEN entry.expires_at > now() THEN entry.job_id ELSE EXCLUDED.job_id END,
        expires_at = CASE WHEN entry.expires_at > now() THEN entry.expires_at ELSE EXCLUDED.expires_at END
`,
			new: `    ON CONFLICT (queue, key) DO NOTHING
`,
			folder: onPostgres,
			test:   "TestOncePerKey_DuplicateWaitsForTheFirst",
			short:  true,
		},
		{
			name:    "a key of a set that another transaction is just taking answers with no job",
			promise: "Once per key",
			file:    "gen/enqueue.sql.go",
			old: `    ON CONFLICT (queue, key) DO UPDATE
    SET
        job_id = CASE WHEN entry.expires_at > now() THEN entry.job_id ELSE EXCLUDED.job_id END,
        expires_at = CASE WHEN entry.expires_at > now() THEN entry.expires_at ELSE EXCLUDED.expires_at END
    RETURNING entry.queue, entry.key, entry.job_id
`,
			new: `    ON CONFLICT (queue, key) DO NOTHING
    RETURNING entry.queue, entry.key, entry.job_id
`,
			folder: onPostgres,
			test:   "TestOncePerKey_DuplicateWaitsForTheFirst",
		},
		{
			name:    "an enqueue that is sent again after a lost reply forgets its key",
			promise: "Once per key",
			file:    "domain/enqueue.go",
			old:     `if job.IdempotencyKey != "" {`,
			new:     `if false {`,
			folder:  onPostgres,
			test:    "TestOncePerKey_EnqueueWhoseReplyWasLostIsSentAgain",
		},
	}
}
