package main

// ofJudge are bugs of the soak's judge, which would call a run green that is not.
func ofJudge() []mutant {
	return []mutant{
		{
			name:    "the judge does not ask whether claims were fenced",
			promise: "Fenced",
			file:    "integration/soak/judge/promise.go",
			old:     "{promise: fenced, move: leaseStillRan, claim: fencedClaim},",
			new:     "{promise: fenced, move: leaseStillRan},",
			folder:  inJudge,
			test:    "TestJudge_BrokenPromiseIsNamed",
		},
		{
			name:    "the judge forgets what got no answer",
			promise: "Kept",
			file:    "integration/soak/judge/enqueue.go",
			old:     "if !told && (a.outcome != saidAmbiguous || !inLog) {",
			new:     "if !told {",
			folder:  inJudge,
			test:    "TestJudge_BrokenPromiseIsNamed",
		},
	}
}
