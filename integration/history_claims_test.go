package integration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/holdfast-pg/holdfast/domain"
)

// drawClaims draws claims of one worker, in any state, and who comes with them: now and then
// somebody else.
func (h *history) drawClaims(t *rapid.T, most int) (workerID string, claims []twoClaims) {
	workerID = someWorker.Draw(t, "worker")
	all, late := h.claimsOf(workerID)
	pool := all
	if len(late) > 0 && rapid.Bool().Draw(t, "late") {
		pool = late
	}
	if len(pool) == 0 {
		t.Skip("the worker never claimed a job")
	}
	claims = rapid.SliceOfNDistinct(rapid.SampledFrom(pool), 1, most, func(c twoClaims) int64 { return c.ours.Generation }).Draw(t, "claims")
	if rapid.IntRange(0, 9).Draw(t, "impostor") == 0 {
		workerID = someWorker.Draw(t, "who")
	}
	return workerID, claims
}

// claimsOf lists claims of a worker, the latest first. Late are those whose job the same worker
// holds by a later claim: the generation alone tells the two apart, and by chance they are rare.
func (h *history) claimsOf(workerID string) (all, late []twoClaims) {
	for _, claim := range slices.Backward(h.claims) {
		if claim.ours.WorkerID != workerID {
			continue
		}
		all = append(all, claim)
		job, _ := h.model.FindJob(context.Background(), claim.ours.ID)
		if job.ClaimedBy != nil && *job.ClaimedBy == workerID && job.Generation != claim.ours.Generation {
			late = append(late, claim)
		}
	}
	return all, late
}

// claimName names a claim by its job, and says whether it holds.
func (h *history) claimName(claim twoClaims) string {
	job, err := h.model.FindJob(context.Background(), claim.ours.ID)
	name := fmt.Sprintf("%s by claim %d", h.nameOf(claim.ours.ID), claim.ours.Generation&(1<<40-1))
	switch {
	case err == nil && job.Generation == claim.ours.Generation && job.ClaimedBy != nil:
		return name
	case err == nil && job.ClaimedBy != nil:
		return fmt.Sprintf("%s (over: %s has claim %d)", name, *job.ClaimedBy, job.Generation&(1<<40-1))
	default:
		return name + " (over)"
	}
}

func (h *history) renew(t *rapid.T) {
	h.begin(t)
	workerID, claims := h.drawClaims(t, 3)
	lease := someLease.Draw(t, "lease")
	var theirs, ours []domain.Claim
	var names []string
	for _, claim := range claims {
		theirs, ours = append(theirs, claim.theirs.Claim), append(ours, claim.ours.Claim)
		names = append(names, h.claimName(claim))
	}
	held, err := h.queue.Renew(t.Context(), workerID, lease, theirs)
	if err != nil {
		t.Fatalf("renew: %v\n%s", err, h.text())
	}
	wanted, _ := h.model.Renew(t.Context(), workerID, lease, ours)
	for i := range held {
		held[i].Generation = h.token(held[i].Generation)
	}
	byToken := func(a, b domain.Claim) int { return cmp.Compare(a.Generation, b.Generation) }
	slices.SortFunc(held, byToken)
	slices.SortFunc(wanted, byToken)
	h.say("%s renews %s for %s: %d of them", workerID, strings.Join(names, ", "), lease, len(held))
	same(t, h, "renewed claims", held, wanted)
}

func (h *history) settle(t *rapid.T) {
	h.begin(t)
	workerID, claims := h.drawClaims(t, 3)
	var theirs, ours []domain.Settlement
	var names []string
	for _, claim := range claims {
		one := domain.Settlement{
			Claim: claim.theirs.Claim, Retention: claim.ours.Retention, Unconfirmed: rapid.IntRange(0, 3).Draw(t, "unconfirmed") == 0,
			Outcome: domain.Outcome{Verdict: someVerdict.Draw(t, "verdict"), Delay: someDelay.Draw(t, "delay"), Error: someName.Draw(t, "error")},
		}
		if one.Outcome.Verdict == domain.Release {
			one.Outcome.Event = rapid.SampledFrom([]domain.EventKind{"", domain.EventReleased, domain.EventFenced}).Draw(t, "event")
		}
		theirs = append(theirs, one)
		one.Claim = claim.ours.Claim
		ours = append(ours, one)
		names = append(names, fmt.Sprintf("%s %s", one.Outcome.Verdict, h.claimName(claim)))
	}
	answers := h.queue.Settle(t.Context(), workerID, theirs)
	for i, answer := range answers {
		names[i] += fmt.Sprintf(" in %s (unconfirmed %t): %s%s", theirs[i].Outcome.Delay, theirs[i].Unconfirmed, answer.Status, onlyErrors(answer.Err))
	}
	h.say("%s settles: %s", workerID, strings.Join(names, ", "))
	for i, wanted := range h.settleOnModel(workerID, ours) {
		same(t, h, "answers to settlements", [2]string{string(answers[i].Status), toldAs(answers[i].Err)}, [2]string{string(wanted.Status), toldAs(wanted.Err)})
	}
}

func onlyErrors(err error) string {
	if err == nil {
		return ""
	}
	return toldAs(err)
}

// settleOnModel settles sort by sort. In Postgres each is a statement, later than the one
// before, and of two jobs that were given back the later one is claimed later.
func (h *history) settleOnModel(workerID string, settlements []domain.Settlement) []domain.Settled {
	type sort struct {
		verdict   domain.Verdict
		retention domain.RetentionMode
	}
	answers := make([]domain.Settled, len(settlements))
	var sorts []sort
	members := map[sort][]int{}
	for i, settlement := range settlements {
		this := sort{verdict: settlement.Outcome.Verdict}
		if this.verdict == domain.Complete {
			this.retention = settlement.Retention
		}
		if members[this] == nil {
			sorts = append(sorts, this)
		}
		members[this] = append(members[this], i)
	}
	for _, this := range sorts {
		var group []domain.Settlement
		for _, i := range members[this] {
			group = append(group, settlements[i])
		}
		for at, answer := range h.model.Settle(context.Background(), workerID, group) {
			answers[members[this][at]] = answer
		}
		h.clock.Advance(tick)
	}
	return answers
}

// handle plays a handler in a transaction, which marks and guards, and then fails or not.
func (h *history) handle(t *rapid.T) {
	h.begin(t)
	_, claims := h.drawClaims(t, 1)
	claim, name := claims[0], someName.Draw(t, "name")
	var answer error
	if rapid.IntRange(0, 2).Draw(t, "broken") == 0 {
		answer = errHandler
	}
	who := h.claimName(claim)
	err := domain.HandleTx(h.Pool, func(ctx context.Context, tx pgx.Tx, job domain.ClaimedJob) error {
		if _, err := domain.MarkHandled(ctx, tx, job.ID, name); err != nil {
			return err
		}
		return cmp.Or(domain.Guard(ctx, tx, name, job.Claim), answer)
	})(t.Context(), claim.theirs)
	h.say("%s handles %s in a transaction with mark and resource %q: %s", claim.theirs.WorkerID, who, name, toldAs(err))
	wanted := h.model.HandleTx(func(ctx context.Context, job domain.ClaimedJob) error {
		if answer != nil {
			return answer // What it wrote is rolled back.
		}
		// Tokens are those of Postgres: of claims made at once, its order is not the model's.
		if err := h.model.Guard(ctx, name, claim.theirs.Claim); err != nil {
			return err
		}
		_, err := h.model.MarkHandled(ctx, job.ID, name)
		return err
	})(t.Context(), claim.ours)
	if answer != nil && errors.Is(err, domain.ErrFenced) && errors.Is(wanted, errHandler) {
		return // The guard was before the error.
	}
	same(t, h, "answer to the handler", toldAs(err), toldAs(wanted))
}

func (h *history) reclaim(t *rapid.T) {
	h.begin(t)
	theirAfter, ourAfter := h.someToken(t)
	theirs, theirOver, err := h.queue.Reclaim(t.Context(), theirAfter)
	if err != nil {
		t.Fatalf("reclaim: %v\n%s", err, h.text())
	}
	ours, ourOver, _ := h.model.Reclaim(t.Context(), ourAfter)
	var ids []domain.JobID
	for i := range theirs {
		theirs[i].Claim.Generation = h.token(theirs[i].Claim.Generation)
		ids = append(ids, theirs[i].Claim.ID)
	}
	h.say("housekeeping reclaims %s, of the claims after token %d", h.namesOf(ids), ourAfter)
	if theirOver != theirAfter || ourOver != ourAfter {
		same(t, h, "token of the oldest claim in flight", h.token(theirOver+1), ourOver+1)
	}
	byToken := func(a, b domain.Reclaimed) int { return cmp.Compare(a.Claim.Generation, b.Claim.Generation) }
	slices.SortFunc(theirs, byToken)
	slices.SortFunc(ours, byToken)
	same(t, h, "reclaimed claims", theirs, ours)
}

// someToken draws one that a claim was given, or 0: the database's, and the model's.
func (h *history) someToken(t *rapid.T) (theirs, ours int64) {
	all := append([]int64{0}, slices.Sorted(maps.Keys(h.tokens))...)
	theirs = rapid.SampledFrom(all).Draw(t, "after")
	return theirs, h.tokens[theirs]
}
