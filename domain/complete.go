package domain

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-pg/holdfast/gen"
)

// Settlement is the outcome of one claim.
type Settlement struct {
	Claim     Claim
	Retention RetentionMode
	Outcome   Outcome

	// Unconfirmed says that the settlement was sent before and got no reply, so that it may
	// have taken effect already.
	Unconfirmed bool
}

// Settled is the answer to a settlement.
type Settled struct {
	// Status is the job's afterwards, if Err is nil.
	Status Status

	// Err is ErrLeaseLost when the claim was over, and ErrRefused when the database refuses
	// this settlement; then nothing was written. After any other error the settlement may have
	// taken effect: send it again, as Unconfirmed.
	Err error
}

// Settle ends a worker's claims, each with its outcome, and answers in the order of the set.
// Only the current claim of a job can settle it. One statement runs for each sort of
// outcome; an error of one leaves the others as they are, and a settlement that the database
// refuses leaves all others as they are.
func (q *Queue) Settle(ctx context.Context, workerID string, settlements []Settlement) []Settled {
	answers := make([]Settled, len(settlements))
	for _, group := range groupSettlements(settlements) {
		q.settleInto(ctx, answers, workerID, group)
		q.noteRefused(ctx, answers, workerID, group)
	}
	return answers
}

// noteRefused leaves an event for each claim of the group that was found to be over.
func (q *Queue) noteRefused(ctx context.Context, answers []Settled, workerID string, group settlementGroup) {
	var refusals []refusal
	for _, member := range group.members {
		if errors.Is(answers[member.position].Err, ErrLeaseLost) {
			detail := fmt.Sprintf("its result was refused: %s", group.verdict)
			refusals = append(refusals, refusal{claim: member.Claim, settling: true, detail: detail})
		}
	}
	q.noteLost(ctx, workerID, refusals)
}

// SettleOn ends one claim on a *pgxpool.Pool, or in the transaction of a pgx.Tx. For
// holdfasttest, where a handler runs without a worker; a worker's claims are settled in sets.
// A lost lease leaves no event: in a transaction its error would be the caller's.
func SettleOn(ctx context.Context, db batcher, settlement Settlement) Settled {
	queue := &Queue{planned: newPlanned(db), queries: gen.New()}
	answers := make([]Settled, 1)
	queue.settleInto(ctx, answers, settlement.Claim.WorkerID, groupSettlements([]Settlement{settlement})[0])
	return answers[0]
}

// settleInto settles a group and puts its answers in their places. When the database refuses
// what is said of one job, the halves are sent again, so that it alone is left.
func (q *Queue) settleInto(ctx context.Context, answers []Settled, workerID string, group settlementGroup) {
	states, err := q.settleGroup(ctx, workerID, group)
	if err == nil {
		err = q.confirm(ctx, group, states)
	}
	if isAboutRow(err) {
		if half := len(group.members) / 2; half > 0 {
			left, right := group, group
			left.members, right.members = group.members[:half], group.members[half:]
			q.settleInto(ctx, answers, workerID, left)
			q.settleInto(ctx, answers, workerID, right)
			return
		}
		err = fmt.Errorf("%w: %w", ErrRefused, err)
	}
	for _, member := range group.members {
		switch status, settled := states[keyOf(member.Claim)]; {
		case settled:
			answers[member.position].Status = status
		case err != nil:
			answers[member.position].Err = err
		default:
			answers[member.position].Err = ErrLeaseLost
		}
	}
}

// claimKey tells claims of one worker apart: it may hold an ended claim of a job beside the
// current one.
type claimKey struct {
	id         JobID
	generation int64
}

func keyOf(claim Claim) claimKey {
	return claimKey{id: claim.ID, generation: claim.Generation}
}

// settlementGroup are settlements that one statement records.
type settlementGroup struct {
	verdict   Verdict
	retention RetentionMode
	members   []groupMember
}

type groupMember struct {
	*Settlement

	position int
}

// groupSettlements sorts settlements by statement, and within each by key.
func groupSettlements(settlements []Settlement) []settlementGroup {
	var groups []settlementGroup
	for i := range settlements {
		settlement := &settlements[i]
		retention := settlement.Retention
		if settlement.Outcome.Verdict != Complete {
			retention = ""
		}
		at := slices.IndexFunc(groups, func(g settlementGroup) bool {
			return g.verdict == settlement.Outcome.Verdict && g.retention == retention
		})
		if at < 0 {
			at = len(groups)
			groups = append(groups, settlementGroup{verdict: settlement.Outcome.Verdict, retention: retention})
		}
		groups[at].members = append(groups[at].members, groupMember{settlement, i})
	}
	for _, group := range groups {
		group.sort()
	}
	return groups
}

// sort puts the members in the order of their keys, in which every statement locks its rows.
func (g settlementGroup) sort() {
	slices.SortFunc(g.members, func(a, b groupMember) int { return compareClaims(a.Claim, b.Claim) })
}

func (g settlementGroup) fences() fenceSet {
	claims := make([]Claim, len(g.members))
	for i, member := range g.members {
		claims[i] = member.Claim
	}
	return newFenceSet(claims)
}

// settleGroup runs the group's statement and returns the state of the job of every claim that
// it ended. The map is never nil.
func (q *Queue) settleGroup(ctx context.Context, workerID string, group settlementGroup) (map[claimKey]Status, error) {
	switch group.verdict {
	case Complete:
		return complete(ctx, q.planned, workerID, group)
	case Retry:
		return q.retry(ctx, workerID, group)
	case Fail:
		return q.fail(ctx, workerID, group)
	case Release:
		return q.release(ctx, workerID, group)
	default:
		panic(fmt.Sprintf("domain: unknown verdict %d", group.verdict))
	}
}

func complete(ctx context.Context, db pipeline, workerID string, group settlementGroup) (map[claimKey]Status, error) {
	queries, set := gen.New(), group.fences()
	params := gen.CompleteJobsParams{
		WorkerID:         workerID,
		PartitionBuckets: set.buckets,
		IDs:              set.ids,
		LeaseGenerations: set.generations,
	}
	var rows []gen.CompleteJobsRow
	var err error
	switch group.retention {
	case RetentionKeep:
		rows, err = convertRows(queries.CompleteAndKeepJobs(ctx, db, gen.CompleteAndKeepJobsParams(params)))
	case RetentionDrop:
		rows, err = convertRows(queries.CompleteAndDropJobs(ctx, db, gen.CompleteAndDropJobsParams(params)))
	default:
		rows, err = queries.CompleteJobs(ctx, db, params)
	}
	if err != nil {
		return map[claimKey]Status{}, fmt.Errorf("complete %d jobs: %w", len(group.members), explain(err))
	}
	return allInState(rows, StatusCompleted), nil
}

// settledRow is what every settling statement returns of a claim that it ended.
type settledRow interface {
	gen.CompleteAndKeepJobsRow | gen.CompleteAndDropJobsRow | gen.FailJobsRow | gen.ReleaseJobsRow
}

func convertRows[Row settledRow](rows []Row, err error) ([]gen.CompleteJobsRow, error) {
	converted := make([]gen.CompleteJobsRow, len(rows))
	for i, row := range rows {
		converted[i] = gen.CompleteJobsRow(row)
	}
	return converted, err
}

func allInState(rows []gen.CompleteJobsRow, status Status) map[claimKey]Status {
	states := make(map[claimKey]Status, len(rows))
	for _, row := range rows {
		states[claimKey{row.ID.Bytes, row.LeaseGeneration}] = status
	}
	return states
}

// confirm looks up the jobs of unconfirmed settlements that the statement did not touch, and
// adds those to states whose earlier settlement took effect: the reply to a commit can be
// lost, and the claim is then over because it was settled.
func (q *Queue) confirm(ctx context.Context, group settlementGroup, states map[claimKey]Status) error {
	var doubtful []groupMember
	var ids []JobID
	for _, member := range group.members {
		if _, settled := states[keyOf(member.Claim)]; !settled && member.Unconfirmed {
			doubtful = append(doubtful, member)
			ids = append(ids, member.Claim.ID)
		}
	}
	if len(doubtful) == 0 {
		return nil
	}
	found, err := jobStates(ctx, q.pool, ids)
	if err != nil {
		return fmt.Errorf("confirm %d settlements: %w", len(doubtful), err)
	}
	for _, member := range doubtful {
		state, exists := found[member.Claim.ID]
		if !tookEffect(member.Settlement, state, exists) {
			continue
		}
		if !exists {
			state.Status = StatusCompleted
		}
		states[keyOf(member.Claim)] = state.Status
	}
	return nil
}

// tookEffect tells whether a settlement that got no reply is what ended its claim. A retry
// or a release cannot be told from a reclaim of the same claim; either way the job is back
// and the worker has nothing left to do, so it is taken as done.
func tookEffect(settlement *Settlement, state jobState, exists bool) bool {
	if !exists {
		return settlement.Outcome.Verdict == Complete && settlement.Retention == RetentionDrop
	}
	if state.Generation != settlement.Claim.Generation {
		return false
	}
	switch settlement.Outcome.Verdict {
	case Complete:
		return state.Status == StatusCompleted
	case Fail:
		return state.Status == StatusFailed
	default:
		return state.Status == StatusPending || state.Status == StatusDeadLetter
	}
}
