package judge

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

// resource is what the sink protects, but for the resources that are jobs: their records are
// in the book.
type resource struct{ token int64 }

// effect is a write that reached the sink.
type effect struct {
	*history.Effect
	line   uint32
	job    *job
	worker uint32
	token  *int64 // The highest that was accepted for its resource.
}

func (e *effect) where() string { return fmt.Sprintf("%s, line %d", history.SinkFile, e.line) }

func (j *judge) readSink(ctx context.Context) error {
	j.resources = map[uint64]*resource{}
	return records(ctx, j, history.SinkFile, func(record *history.Effect, line uint32) error {
		job, err := j.jobOf(record.Job)
		if err != nil {
			return err
		}
		if record.Token <= 0 || record.Resource == "" {
			return errors.New("the effect has no token, or no resource")
		}
		e := &effect{Effect: record, line: line, job: job, worker: j.workerOf(record.WorkerID), token: &job.token}
		if record.Resource != record.Job {
			e.token = j.tokenOf(record.Resource)
		}
		for _, rule := range j.rules {
			if rule.effect != nil && rule.effect(j, e) {
				j.checked[rule.promise]++
			}
		}
		j.counts.Effects++
		if record.Accepted {
			*e.token = max(*e.token, record.Token)
			j.claimOf(record.Token).applied++
		} else {
			j.reach(staleEffect)
		}
		return nil
	})
}

func (j *judge) tokenOf(name string) *int64 {
	hash := j.hash(name)
	if j.resources[hash] == nil {
		j.resources[hash] = new(resource)
	}
	return &j.resources[hash].token
}

// tokenHolds: the sink accepts no lower token after a higher one and refuses no other, and a
// token is that of one claim.
func tokenHolds(j *judge, e *effect) bool {
	about := subject{job: e.job.number, generation: e.Token, other: e.Resource}
	c := j.claimOf(e.Token)
	switch {
	case !c.logged || c.job != e.job.number || c.worker != e.worker:
		j.broke(effects, about, e.where(), "worker %s wrote with a token that is not that of a claim of its own", e.WorkerID)
	case e.Accepted && e.Token < *e.token:
		j.broke(effects, about, e.where(), "the token was accepted after %d", *e.token)
	case !e.Accepted && e.Token >= *e.token:
		j.broke(effects, about, e.where(), "the token was refused, and the highest accepted is %d", *e.token)
	}
	return true
}

// effectsArrived: what a worker was told to be written is.
func effectsArrived(j *judge, generation int64, c *claim) bool {
	if c.appliedTold == 0 {
		return false
	}
	if c.applied < c.appliedTold {
		j.broke(effects, subject{job: c.job, generation: generation}, j.place(c.at), "%d writes were told as done, and the sink has %d", c.appliedTold, c.applied)
	}
	return true
}
