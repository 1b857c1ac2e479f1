package judge

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

// The jobs with the most operations are also checked without the log: is there an order of
// what clients asked, each between its question and its answer, that explains all answers?
const (
	samples     = 500
	sampleLimit = 2 * time.Second // A job that takes longer is not decided.
)

func (j *judge) checkSamples(ctx context.Context) error {
	chosen := j.sampled()
	histories := map[uint32][]porcupine.Operation{}
	files, err := history.Clients(j.dir)
	if err != nil {
		return err
	}
	for _, name := range files {
		for line, err := range history.Lines(j.dir, name) {
			if err != nil {
				return err
			}
			number := chosen[idIn(line)]
			if number == 0 {
				continue
			}
			var op history.Op
			if err := json.Unmarshal(line, &op); err != nil {
				return err
			}
			if event, ours := operationOf(&op); ours {
				histories[number] = append(histories[number], event)
			}
		}
	}
	model := oneJob.ToModel()
	for _, number := range chosen {
		switch porcupine.CheckOperationsTimeout(model, histories[number], sampleLimit) {
		case porcupine.Illegal:
			j.broke(fenced, subject{job: number}, "all client files", "no order of its %d operations explains what its workers were told", len(histories[number]))
		case porcupine.Unknown:
			j.counts.Undecided++
		case porcupine.Ok:
		}
		j.counts.Sampled++
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// sampled are the jobs with the most operations. Bookings are not among them: the operation
// that completes one is not a client's record.
func (j *judge) sampled() map[jobID]uint32 {
	var busy []*job
	for job := range j.jobs.all {
		if job.ops > 0 && !job.booking && job.status != none {
			busy = append(busy, job)
		}
	}
	slices.SortStableFunc(busy, func(a, b *job) int { return int(b.ops) - int(a.ops) })
	chosen := map[jobID]uint32{}
	for _, job := range busy[:min(len(busy), samples)] {
		chosen[job.id] = job.number
	}
	return chosen
}

// idIn finds the job of a line without decoding it: most lines are of no sampled job.
func idIn(line []byte) (id jobID) {
	_, rest, found := bytes.Cut(line, []byte(`"job":"`))
	if !found || len(rest) < 36 {
		return id
	}
	id, _ = parseID(string(rest[:36]))
	return id
}

// step is what a client asked and was told of one job.
type step struct {
	op         string
	outcome    string
	generation int64
	verdict    string
	status     string
	repeated   bool
}

func operationOf(op *history.Op) (porcupine.Operation, bool) {
	switch op.Op {
	case history.OpClaim, history.OpRenew, history.OpSettle, history.OpRedrive:
	default:
		return porcupine.Operation{}, false
	}
	if op.Outcome == history.Error {
		return porcupine.Operation{}, false
	}
	event := porcupine.Operation{Call: op.Begin.UnixNano(), Return: op.End.UnixNano()}
	event.Input = step{op.Op, op.Outcome, op.Generation, op.Verdict, op.Status, op.Repeated}
	if op.Outcome == history.Ambiguous {
		event.Return = math.MaxInt64 // It may happen later, or never.
	}
	return event, true
}

// sight is the state of a job as its clients can know it.
type sight struct {
	status     string
	generation int64
}

// oneJob is a job in which any claim can be taken away at any time, and any can be made of
// which nobody was told. What is left: only the current claim is renewed or settled.
var oneJob = porcupine.NondeterministicModel{
	Init: func() []any { return []any{sight{status: pending.String()}} },
	Step: func(state, input, _ any) []any { return input.(step).from(state.(sight)) },
}

func (s step) from(now sight) []any {
	held := now.status == processing.String() && now.generation == s.generation
	switch {
	case s.outcome == history.Ambiguous:
		next := []any{now}
		switch {
		case s.op == history.OpSettle && held:
			next = append(next, s.settled()...)
		case s.op == history.OpRedrive && now.redrivable():
			next = append(next, sight{pending.String(), now.generation})
		}
		return next
	case s.outcome != history.OK:
		switch {
		case held && s.op == history.OpRenew: // Its lease may have ended, and nobody has come for it.
			return []any{now, sight{pending.String(), s.generation}, sight{deadLetter.String(), s.generation}}
		case held: // It can only have been taken away.
			return []any{sight{pending.String(), s.generation}, sight{deadLetter.String(), s.generation}}
		}
		return []any{now}
	}
	switch s.op {
	case history.OpClaim:
		if s.generation > now.generation && (now.status == pending.String() || now.status == processing.String()) {
			return []any{sight{processing.String(), s.generation}}
		}
	case history.OpRenew:
		if held {
			return []any{now}
		}
	case history.OpRedrive:
		if now.status != completed.String() { // A reclaim may have dead-lettered it.
			return []any{sight{pending.String(), now.generation}}
		}
	case history.OpSettle:
		return s.settle(now, held)
	}
	return nil
}

func (s sight) redrivable() bool {
	return s.status == failed.String() || s.status == deadLetter.String()
}

func (s step) settle(now sight, held bool) []any {
	switch {
	case held && s.repeated:
		return append(s.settled(), sight{s.status, s.generation})
	case held:
		return []any{sight{s.status, s.generation}}
	case s.repeated && now.generation == s.generation && now.status == s.status:
		return []any{now}
	}
	return nil
}

// settled are the states in which a settlement can leave the job.
func (s step) settled() []any {
	switch s.verdict {
	case toComplete.String():
		return []any{sight{completed.String(), s.generation}}
	case toFail.String():
		return []any{sight{failed.String(), s.generation}}
	}
	return []any{sight{pending.String(), s.generation}, sight{deadLetter.String(), s.generation}}
}
