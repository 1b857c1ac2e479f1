package judge

// checkDrains asks of each drain that had ended by a time, 0 for all of them, what it left.
func (j *judge) checkDrains(until int64) {
	for ; j.drained < len(j.drains); j.drained++ {
		d := j.drains[j.drained]
		if until != 0 && d.end >= until {
			return
		}
		for _, rule := range j.rules {
			if rule.drain != nil && rule.drain(j, d) {
				j.checked[rule.promise]++
			}
		}
		j.holders[d.worker].gone = true
		if d.helped {
			j.reach(drainEnded)
		}
	}
}

// drainHeldNothing: what Postgres had committed when the worker was gone shows no claim of it.
func drainHeldNothing(j *judge, d *drain) bool {
	if held := j.holders[d.worker].held; held > 0 {
		about := subject{other: j.workers.text(d.worker)}
		for job := range j.jobs.all {
			if job.holder == d.worker {
				about.job, about.generation = job.number, job.generation
				break
			}
		}
		j.broke(nothingLeft, about, j.place(d.at), "the worker is gone and holds %d jobs", held)
	}
	return true
}

// goneClaimsNothing: nothing is claimed for a worker that is gone.
func goneClaimsNothing(j *judge, m *move) bool {
	if m.kind != claimed {
		return false
	}
	if j.holders[j.workerOf(m.new.ClaimedBy)].gone {
		j.broke(nothingLeft, m.about(), m.where(), "it was claimed for worker %s, whose drain had ended", m.new.ClaimedBy)
	}
	return true
}
