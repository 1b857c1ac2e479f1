package judge

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

// readClients takes down what every process asked for and was told.
func (j *judge) readClients(ctx context.Context) error {
	files, err := history.Clients(j.dir)
	if err != nil {
		return err
	}
	for _, name := range files {
		if _, listed := j.run.Lines[name]; !listed {
			return fmt.Errorf("%w: %s is not in %s", history.ErrCutShort, name, history.ManifestFile)
		}
		file := uint16(j.files.number(name))
		err := records(ctx, j, name, func(op *history.Op, line uint32) error {
			return j.hear(op, where{file, line})
		})
		if err != nil {
			return err
		}
	}
	slices.SortFunc(j.drains, func(a, b *drain) int { return int(min(max(a.end-b.end, -1), 1)) })
	return nil
}

// hear takes down an operation.
func (j *judge) hear(op *history.Op, at where) error {
	said := outcome(slices.Index(outcomeNames[:], op.Outcome))
	if said > saidAmbiguous {
		return fmt.Errorf("%.60q is no outcome", op.Outcome)
	}
	j.counts.Operations++
	switch op.Op {
	case history.OpEnqueue:
		return j.hearEnqueue(op, said, at)
	case history.OpDrain:
		j.hearDrain(op, said, at)
		return nil
	case history.OpRedrive:
		return j.hearRedrive(op, said)
	case history.OpClaim, history.OpRunBegin, history.OpRunEnd, history.OpRenew, history.OpSettle, history.OpEffect:
		return j.hearWorker(op, said, at)
	}
	return fmt.Errorf("%.60q is no operation", op.Op)
}

func (j *judge) hearEnqueue(op *history.Op, said outcome, at where) error {
	if op.Marker == "" || said == saidNothing {
		return errors.New("the enqueue has no marker, or no outcome")
	}
	record, _ := j.enqueues.add()
	*record = asked{marker: j.markerOf(op.Marker), process: j.processes.number(op.Process), outcome: said, at: at}
	if op.Job == "" {
		return nil
	}
	job, err := j.jobOf(op.Job)
	if err != nil {
		return err
	}
	record.job = job.number
	if said != saidOK && said != saidDuplicate {
		return nil
	}
	if said == saidOK {
		if job.winner != 0 {
			j.broke(oncePerKey, subject{job: job.number}, j.place(at), "two enqueues were told that they made the job")
		}
		job.winner, job.acked = record.process, nanos(op.End)
	}
	if op.IdempotencyKey != "" {
		j.tellKey(op.Queue, op.IdempotencyKey, job, j.place(at))
	}
	return nil
}

// tellKey takes down that a key is a job's.
func (j *judge) tellKey(queue, key string, job *job, where string) {
	hash := j.hash(queue, key)
	first, known := j.keys[hash]
	if !known {
		j.keys[hash] = job.number
	} else if first != job.number {
		j.broke(oncePerKey, subject{job: job.number}, where, "the key %q of queue %s is also that of job %s", key, queue, j.jobs.at(first).id)
	}
}

func (j *judge) hearDrain(op *history.Op, said outcome, at where) {
	if said != saidOK {
		return
	}
	worker := j.workerOf(op.WorkerID)
	record := &drain{worker: worker, begin: nanos(op.Begin), end: nanos(op.End), at: at}
	j.drains = append(j.drains, record)
	j.holders[worker].drain = record
}

func (j *judge) hearRedrive(op *history.Op, said outcome) error {
	job, err := j.jobOf(op.Job)
	if err != nil {
		return err
	}
	switch said {
	case saidOK:
		job.redrivesTold++
		job.redrivesAllowed++
	case saidAmbiguous:
		job.redrivesAllowed++
	default:
	}
	return nil
}

// hearWorker takes down what a worker did under a claim.
func (j *judge) hearWorker(op *history.Op, said outcome, at where) error {
	if op.Job == "" {
		if op.Op == history.OpClaim {
			return nil // No job, or no reply.
		}
		return fmt.Errorf("the %s has no job", op.Op)
	}
	job, err := j.jobOf(op.Job)
	if err != nil {
		return err
	}
	if op.Generation <= 0 {
		return fmt.Errorf("the %s has no generation", op.Op)
	}
	about := subject{job: job.number, generation: op.Generation}
	c := j.claimOf(op.Generation)
	worker := j.workerOf(op.WorkerID)
	switch {
	case c.job == 0:
		c.job, c.client = job.number, worker
	case c.job != job.number:
		j.broke(tokensGrow, about, j.place(at), "the generation was also told of job %s", j.jobs.at(c.job).id)
		return nil
	case c.client != worker:
		j.broke(fenced, about, j.place(at), "worker %s acts under a claim of worker %s", op.WorkerID, j.workers.text(c.client))
	}
	job.ops++
	switch op.Op {
	case history.OpClaim:
		j.hearClaim(op, said, about, c, at)
	case history.OpRunBegin:
		c.runs = min(c.runs+1, 2)
		c.at = at
		job.runs = min(job.runs+1, 1000)
	case history.OpRunEnd:
		if op.CutShort {
			j.reach(cutShort)
		}
		if op.Verdict != "" && !slices.Contains(verdictNames[:], op.Verdict) {
			return fmt.Errorf("%.60q is no verdict", op.Verdict)
		}
		c.ranOK = c.ranOK || op.Verdict == toComplete.String()
	case history.OpRenew:
		j.hearRenew(said, c, at)
	case history.OpSettle:
		return j.hearSettle(op, said, about, c, at)
	case history.OpEffect:
		if said == saidOK {
			c.acted = true
			c.appliedTold++
			c.at = at
		}
	}
	return nil
}

func (j *judge) hearClaim(op *history.Op, said outcome, about subject, c *claim, at where) {
	if said != saidOK {
		return
	}
	if c.given {
		j.broke(fenced, about, j.place(at), "the claim was given twice")
	}
	c.given, c.attemptTold, c.at = true, uint16(op.Attempt), at
}

func (j *judge) hearRenew(said outcome, c *claim, at where) {
	switch said {
	case saidOK:
		c.renewedTold++
		c.acted = true
	case saidStale:
		c.renewStale = true
	default:
		c.renewedUnsure++
	}
	c.at = at
}

func (j *judge) hearSettle(op *history.Op, said outcome, about subject, c *claim, at where) error {
	number := slices.Index(verdictNames[:], op.Verdict)
	if number < 0 {
		return fmt.Errorf("%.60q is no verdict", op.Verdict)
	}
	verdict := verdicts(1) << number
	c.at = at
	if verdict == toComplete && !c.ranOK {
		j.broke(completeOnce, about, j.place(at), "the completion was sent before its handler had returned well")
	}
	switch said {
	case saidOK:
		return j.hearSettled(op, verdict, about, c, at)
	case saidStale:
		c.refused |= verdict
		j.reach(staleSettlement)
	case saidError:
		c.failed |= verdict
		j.failures[about.generation] = max(j.failures[about.generation], nanos(op.End))
	default:
		c.unsure |= verdict
	}
	return nil
}

func (j *judge) hearSettled(op *history.Op, verdict verdicts, about subject, c *claim, at where) (err error) {
	c.acted = true
	if op.Repeated {
		c.again |= verdict
		j.repeats[about.generation] = nanos(op.Begin)
		return nil
	}
	if c.oks++; c.oks > 1 {
		j.broke(fenced, about, j.place(at), "the claim was settled twice, both times with success")
	}
	c.ok |= verdict
	c.told, err = parseStatus(op.Status)
	return err
}
