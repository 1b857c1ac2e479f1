package main

func ofTransactions() []mutant {
	return []mutant{
		{
			name:    "HandleTx completes the job before its handler runs, and ignores the handler's error",
			promise: "Together",
			file:    "domain/handletx.go",
			old: `	if err := run(ctx, lent, job); err != nil {
		return err
	}
	return completeInTx(ctx, tx, job, lent.ended)
`,
			new: `	if err := completeInTx(ctx, tx, job, lent.ended); err != nil {
		return err
	}
	_ = run(ctx, lent, job)
	return nil
`,
			folder: onPostgres,
			test:   "TestTogether_ErrorOfAHandleTxLeavesNeither",
			short:  true,
		},
		{
			name:    "HandleTx runs the handler of a claim that is over",
			promise: "Fenced",
			file:    "domain/handletx.go",
			old: `	if err := lockClaim(ctx, tx, job.Claim); err != nil {
		return err
	}
`,
			new:    "",
			folder: onPostgres,
			test:   "TestFenced_HandleTxOfALostClaimIsToldBeforeItWrites",
		},
		{
			name:    "a commit whose reply was lost is taken for a failure",
			promise: "Observed complete once",
			file:    "domain/handletx.go",
			old:     "if tookEffect(completionOf(job), state, exists) {",
			new:     "if tookEffect(completionOf(job), state, exists) && false {",
			folder:  onPostgres,
			test:    "TestCompleteOnce_LostReplyOfAHandleTxIsDone",
		},
		{
			name:    "a resource refuses the second write of one claim",
			promise: "Effects can be fenced",
			file:    "gen/fence.sql.go",
			old:     "WHERE fence.token <= EXCLUDED.token",
			new:     "WHERE fence.token < EXCLUDED.token",
			folder:  onPostgres,
			test:    "TestFencedEffects_LowerTokenAfterAHigherOneIsRefused",
		},
		{
			name:    "a resource admits any token",
			promise: "Effects can be fenced",
			file:    "gen/fence.sql.go",
			old:     "WHERE fence.token <= EXCLUDED.token\n",
			new:     "",
			folder:  onPostgres,
			test:    "TestFencedEffects_LowerTokenAfterAHigherOneIsRefused",
		},
		{
			name:    "every run of a handler counts as the first",
			promise: "What a handler owes",
			file:    "gen/handled.sql.go",
			old:     "ON CONFLICT (scope, key) DO NOTHING\n",
			new:     "ON CONFLICT (scope, key) DO UPDATE SET handled_at = EXCLUDED.handled_at\n",
			folder:  onPostgres,
			test:    "TestHandled_RacingRunsMarkOnce",
		},
	}
}
