package integration

import (
	"bytes"
	"slices"

	"pgregory.net/rapid"

	"github.com/holdfast-pg/holdfast/domain"
)

// someBy is a person with and without a reason.
var someBy = rapid.SampledFrom([]domain.By{{Actor: "anna@ops-1"}, {Actor: "anna@ops-1", Reason: "the order is \"void\""}})

// drawIDs draws jobs of any state.
func (h *history) drawIDs(t *rapid.T) []domain.JobID {
	if len(h.ids) == 0 {
		t.Skip("there is no job")
	}
	return rapid.SliceOfNDistinct(rapid.SampledFrom(h.ids), 1, 4, rapid.ID).Draw(t, "jobs")
}

// sameChange fails unless Postgres and the model have changed the same jobs.
func (h *history) sameChange(t *rapid.T, what string, theirs, ours []domain.JobID) {
	byID := func(a, b domain.JobID) int { return bytes.Compare(a[:], b[:]) }
	slices.SortFunc(theirs, byID)
	slices.SortFunc(ours, byID)
	same(t, h, what, theirs, ours)
}

func (h *history) redrive(t *rapid.T) {
	h.begin(t)
	asked, maxAttempts := h.drawIDs(t), max(0, rapid.IntRange(-3, 3).Draw(t, "max attempts"))
	by := someBy.Draw(t, "by")
	theirs, err := by.Redrive(t.Context(), h.Pool, maxAttempts, asked...)
	if err != nil {
		t.Fatalf("redrive: %v\n%s", err, h.text())
	}
	ours, _ := h.model.Redrive(t.Context(), by, maxAttempts, asked...)
	h.say("a person redrives %s for %d attempts: %s", h.namesOf(asked), maxAttempts, h.namesOf(theirs))
	h.sameChange(t, "redriven jobs", theirs, ours)
}

func (h *history) cancel(t *rapid.T) {
	h.begin(t)
	asked, by := h.drawIDs(t), someBy.Draw(t, "by")
	theirs, err := by.Cancel(t.Context(), h.Pool, asked...)
	if err != nil {
		t.Fatalf("cancel: %v\n%s", err, h.text())
	}
	ours, _ := h.model.Cancel(t.Context(), by, asked...)
	h.say("a person cancels %s: %s", h.namesOf(asked), h.namesOf(theirs))
	h.sameChange(t, "cancelled jobs", theirs, ours)
}

func (h *history) release(t *rapid.T) {
	h.begin(t)
	_, claims := h.drawClaims(t, 3)
	var theirClaims, ourClaims []domain.Claim
	var names []domain.JobID
	for _, claim := range claims {
		theirClaims, ourClaims, names = append(theirClaims, claim.theirs.Claim), append(ourClaims, claim.ours.Claim), append(names, claim.theirs.ID)
	}
	by := someBy.Draw(t, "by")
	theirs, err := by.Release(t.Context(), h.Pool, theirClaims...)
	if err != nil {
		t.Fatalf("release: %v\n%s", err, h.text())
	}
	ours, _ := h.model.Release(t.Context(), by, ourClaims...)
	h.say("a person releases claims of %s: %s", h.namesOf(names), h.namesOf(theirs))
	h.sameChange(t, "released jobs", theirs, ours)
}

func (h *history) purge(t *rapid.T) {
	h.begin(t)
	asked := h.drawIDs(t)
	by := someBy.Draw(t, "by")
	theirs, err := by.Purge(t.Context(), h.Pool, asked...)
	if err != nil {
		t.Fatalf("purge: %v\n%s", err, h.text())
	}
	ours, _ := h.model.Purge(t.Context(), by, asked...)
	h.say("a person purges %s: %s", h.namesOf(asked), h.namesOf(theirs))
	h.sameChange(t, "purged jobs", theirs, ours)
}

func (h *history) evict(t *rapid.T) {
	h.begin(t)
	worker := someWorker.Draw(t, "worker")
	by := someBy.Draw(t, "by")
	theirs, left, err := by.Evict(t.Context(), h.Pool, worker)
	ours, wanted := h.model.Evict(t.Context(), by, worker)
	h.say("a person evicts %s, which holds %d jobs: %s", worker, theirs, toldAs(err))
	same(t, h, "answer to the eviction", toldAs(err), toldAs(wanted))
	same(t, h, "jobs taken, and left", [2]int{theirs, left}, [2]int{ours, 0})
}
