package judge

// fencedClaim: what a worker was told of its claim is what the log has.
func fencedClaim(j *judge, generation int64, c *claim) bool {
	about := subject{job: c.job, generation: generation}
	if !c.logged {
		if c.given || c.acted || c.runs > 0 {
			j.broke(fenced, about, j.place(c.at), "worker %s acted under a claim that the log does not have", j.workers.text(c.client))
		}
		return true
	}
	if c.client != 0 && c.client != c.worker {
		j.broke(fenced, about, j.place(c.at), "worker %s acted under the claim of worker %s", j.workers.text(c.client), j.workers.text(c.worker))
	}
	settledAsTold(j, about, c)
	refusedAsTold(j, about, c)
	renewedAsTold(j, about, c)
	return true
}

// leaseStillRan: a renewal moves the deadline of a lease that has not ended.
func leaseStillRan(j *judge, m *move) bool {
	if m.kind != renewed {
		return false
	}
	deadline := nanos(m.new.LeaseExpiresAt)
	switch {
	case deadline < m.job.lease:
		j.broke(fenced, m.about(), m.where(), "a renewal moved the deadline back")
	case deadline-int64(j.run.Lease) >= m.job.lease:
		j.broke(fenced, m.about(), m.where(), "a lease was renewed that had ended")
	}
	return true
}

// settledAsTold: each settlement that was told as done is in the log, or was found there when
// it was repeated: then a retry or a release cannot be told from a reclaim, which leaves the
// worker as little to do.
func settledAsTold(j *judge, about subject, c *claim) {
	var did bool
	switch {
	case c.ok != 0:
		did = c.ok == c.end.verdict() && c.told == after[c.end]
	case c.again&(toComplete|toFail) != 0:
		did = c.again == c.end.verdict()
	case c.again != 0:
		did = c.end == givenBack || c.end == died || c.end == released
	default:
		return
	}
	if !did {
		j.broke(fenced, about, j.place(c.at), "to %s it was told as done, job %s; by the log the claim is %s (%s)", c.ok|c.again, c.told, c.end, j.inLog(c.line))
	}
}

// verdict is the settlement that does what the log says.
func (k moveKind) verdict() verdicts {
	switch k {
	case finished:
		return toComplete
	case gaveUp:
		return toFail
	case released:
		return toRelease
	case givenBack, died:
		return toRetry
	default:
		return 0
	}
}

// reclaimed tells whether the end of the claim can be a reclaim: nothing else is known to
// have done it.
func (c *claim) reclaimed() bool {
	return (c.end == givenBack || c.end == died) && !c.worded && c.ok&toRetry == 0
}

// refusedAsTold: when a settlement was refused, somebody else had ended the claim, or an
// earlier one of its own without an answer had.
func refusedAsTold(j *judge, about subject, c *claim) {
	did := c.end.verdict()
	switch {
	case c.ok|c.again != 0, c.reclaimed():
		return
	case c.refused == 0:
		// A worker that was told so sends it again, which one that is killed does not write down.
		unwritten := c.sentAgain && j.holders[c.worker].drain == nil
		if c.failed&^c.unsure&did != 0 && !unwritten {
			j.broke(fenced, about, j.place(c.at), "to %s it was told as not done; by the log the claim is %s (%s)", did, c.end, j.inLog(c.line))
		}
		return
	case did == toComplete && (j.jobs.at(c.job).booking || c.unsure&toComplete != 0 && c.refused&toComplete == 0):
		return
	case did != toComplete && c.unsure&did != 0:
		return // A later claim, or a redrive, hid it from the repeated one.
	}
	j.broke(fenced, about, j.place(c.at), "to %s it was refused; by the log the claim is %s (%s)", c.refused, c.end, j.inLog(c.line))
}

// renewedAsTold: each renewal that was told as done moved the deadline. One that was refused
// did not: after it the worker sends no more, so that none is missing from its record.
func renewedAsTold(j *judge, about subject, c *claim) {
	if c.renewed < c.renewedTold {
		j.broke(fenced, about, j.place(c.at), "%d renewals were told as done; by the log %d moved the deadline", c.renewedTold, c.renewed)
	}
	if c.renewStale && c.renewed > c.renewedTold+c.renewedUnsure {
		j.broke(fenced, about, j.place(c.at), "a renewal was refused, and the log has %d where %d were told as done", c.renewed, c.renewedTold)
	}
}

// neverReclaimedEarly: a claim that ended before its deadline was settled, not reclaimed. The
// commit of a reclaim is never before the deadline that it saw.
func neverReclaimedEarly(j *judge, generation int64, c *claim) bool {
	if !c.logged || !c.reclaimed() {
		return false
	}
	if c.early && (c.unsure|c.again)&toRetry == 0 {
		j.broke(neverEarly, subject{job: c.job, generation: generation}, j.inLog(c.line), "the claim was taken away before its deadline")
	}
	return true
}

// completedOnce: no job completes twice.
func completedOnce(j *judge, m *move) bool {
	if m.at != archive && m.to != completed || m.kind == tidied {
		return false
	}
	if m.job.completions > 0 {
		j.broke(completeOnce, m.about(), m.where(), "it is completed again")
	}
	return true
}

// completedAfterRun: a handler had run well under the claim that completed the job. That of a
// booking completes it before it returns, which its worker may not live to write down.
func completedAfterRun(j *judge, generation int64, c *claim) bool {
	if !c.logged || c.end != finished {
		return false
	}
	if !c.ranOK && (!j.jobs.at(c.job).booking || c.runs == 0) {
		j.broke(completeOnce, subject{job: c.job, generation: generation}, j.inLog(c.line), "it was completed, and no handler had returned well under that claim")
	}
	return true
}
