package judge

import "github.com/holdfast-pg/holdfast/integration/soak/history"

// lane is the jobs of one key of an ordered queue that are not done, by seq; jobs that are done
// leave when they come to the front.
type lane struct {
	holder uint32 // The job that is being processed.
	live   int
	jobs   []waiting
}

type waiting struct {
	seq int64
	job uint32
}

func (j *judge) enterLane(job *job, row *history.Row) {
	hash := j.hash(row.Queue, row.PartitionKey)
	number, known := j.lanes[hash]
	if !known {
		number = uint32(len(j.lane))
		j.lane = append(j.lane, lane{})
		j.lanes[hash] = number
	}
	job.lane = number
	lane := &j.lane[number]
	lane.live++
	lane.jobs = append(lane.jobs, waiting{row.Seq, job.number})
	for i := len(lane.jobs) - 1; i > 0 && lane.jobs[i-1].seq > row.Seq; i-- {
		lane.jobs[i-1], lane.jobs[i] = lane.jobs[i], lane.jobs[i-1]
	}
}

// leaveLane is called when a job of it is no longer processed.
func (j *judge) leaveLane(m *move) {
	lane := &j.lane[m.job.lane]
	if lane.holder == m.job.number {
		lane.holder = 0
	}
	if m.to.terminal() {
		lane.live--
		for len(lane.jobs) > 0 && (lane.jobs[0].job == m.job.number || j.jobs.at(lane.jobs[0].job).status.terminal()) {
			lane.jobs = lane.jobs[1:]
		}
	}
	m.job.laneWaits = m.kind == givenBack && lane.live > 1
}

// lanesKeepOrder: a lane has one claim at a time, and a claim takes its first job that is not
// done, of those whose producers knew that they had committed when the claim began. A job that
// was redriven is not asked about: who claims meanwhile may not see it.
func lanesKeepOrder(j *judge, m *move) bool {
	if m.kind != claimed || !m.job.ordered {
		return false
	}
	lane := &j.lane[m.job.lane]
	if lane.holder != 0 {
		j.broke(inOrder, m.about(), m.where(), "it was claimed while job %s of its key was being processed", j.jobs.at(lane.holder).id)
	}
	began := nanos(m.new.ClaimedAt)
	for _, first := range lane.jobs {
		if first.seq >= m.job.seq {
			break
		}
		other := j.jobs.at(first.job)
		seen := other.claims > 0 || other.acked != 0 && other.acked < began
		if seen && !other.status.terminal() && other.redrives == 0 && other.number != lane.holder {
			j.broke(inOrder, m.about(), m.where(), "it was claimed before job %s of its key, which is %s with a lower seq", other.id, other.status)
		}
	}
	return true
}
