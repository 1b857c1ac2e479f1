package main

func ofClaims() []mutant {
	return []mutant{
		{
			name:    "a claim waits for a job that somebody has locked",
			promise: "Hints are hints",
			file:    "gen/claim.sql.go",
			old:     "\n        FOR UPDATE SKIP LOCKED\n",
			new:     "\n        FOR UPDATE\n",
			folder:  onPostgres,
			test:    "TestClaim_LockedJobHoldsUpNoOther",
		},
		{
			name:    "jobs are chosen without locking them, and taken without a second look",
			promise: "Fenced",
			file:    "gen/claim.sql.go",
			old:     "\n        FOR UPDATE SKIP LOCKED\n",
			new:     "\n",
			folder:  onPostgres,
			test:    "TestExclusive_NoClaimIsGivenTwice",
		},
		{
			name:    "a claim spends no attempt",
			promise: "Attempts are bounded",
			file:    "gen/claim.sql.go",
			old:     "attempts = job.attempts + 1\n",
			new:     "attempts = job.attempts\n",
			folder:  onPostgres,
			test:    "TestAttemptsAreBounded_SpentJobIsDeadLetteredAndBlocksNobody",
		},
		{
			name:    "tokens begin anew with each job",
			promise: "Tokens only grow",
			file:    "gen/claim.sql.go",
			old:     "nextval('holdfast.generation_seq')",
			new:     "job.attempts + 1",
			folder:  onPostgres,
			test:    "TestTokensOnlyGrow_LaterClaimsOfAnyJobHaveLargerOnes",
		},
		{
			name:    "the epoch is left out of the token",
			promise: "Tokens only grow",
			file:    "gen/claim.sql.go",
			old:     "SELECT meta.epoch",
			new:     "SELECT 1 AS epoch",
			folder:  onPostgres,
			test:    "TestTokensOnlyGrow_LaterClaimsOfAnyJobHaveLargerOnes",
		},
		{
			name:    "a promoted standby goes on in the epoch of the old primary",
			promise: "Tokens only grow",
			file:    "gen/claim.sql.go",
			old:     "AND meta.incarnation = holdfast.incarnation()",
			new:     "",
			folder:  onPostgres,
			test:    "TestTokensOnlyGrow_ThoughAFailoverLosesClaims",
		},
		{
			name:    "the jobs of one claim share a token",
			promise: "Tokens only grow",
			file:    "gen/claim.sql.go",
			old:     "nextval('holdfast.generation_seq')",
			new:     "(SELECT nextval('holdfast.generation_seq'))",
			folder:  onPostgres,
			test:    "TestExclusive_NoClaimIsGivenTwice",
		},
	}
}
