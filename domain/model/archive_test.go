package model_test

import (
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

const day = 24 * time.Hour

var house = domain.HouseRules{
	WorkerTTL: ttl, DeadWorkersFor: day, MarksFor: 7 * day, FencesFor: 30 * day, EventsFor: 30 * day, ArchiveAhead: 14,
}

func (w world) exists(id domain.JobID) bool {
	_, err := w.FindJob(w.t.Context(), id)
	return err == nil
}

func TestKeepHouse_ArchivesKeptJobsInTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setRetention(domain.RetentionKeep)
	id := w.enqueue(model.NewJob{})
	w.settle(w.claimOne("w1"), domain.Outcome{})
	w.clock.Advance(day)
	equal(t, w.keepHouse(house).JobsArchived, int64(0))
	w.clock.Advance(time.Microsecond)
	equal(t, w.keepHouse(house).JobsArchived, int64(1))
	equal(t, w.find(id).Archived, true)
	equal(t, *w.find(id).CompletedAt, noon)
}

func TestKept_UntilRetentionHasPassed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.enqueue(model.NewJob{})
	w.settle(w.claimOne("w1"), domain.Outcome{})
	// Completed at noon, the job goes with its whole day: seven days after midnight.
	w.clock.Advance(7*day + 12*time.Hour)
	report := w.keepHouse(house)
	equal(t, report.DaysDropped, int64(0))
	equal(t, report.DaysCreated, int64(8))
	w.clock.Advance(time.Microsecond)
	equal(t, w.keepHouse(house).DaysDropped, int64(1))
	equal(t, w.exists(id), false)
}

func TestKept_ADayWithoutAPartitionGetsOneFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock.Advance(30 * day) // Nobody keeps house: the prepared days are behind.
	id := w.enqueue(model.NewJob{})
	w.settle(w.claimOne("w1"), domain.Outcome{})
	w.clock.Advance(2 * day)
	report := w.keepHouse(house)
	equal(t, report.DaysCreated, int64(2+1+14))
	equal(t, report.DaysDropped, int64(15))
	equal(t, w.exists(id), true)
}

func TestKept_FailedJobsForGood(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.enqueue(model.NewJob{})
	w.settle(w.claimOne("w1"), domain.Outcome{Verdict: domain.Fail})
	w.clock.Advance(1000 * day)
	w.keepHouse(house)
	equal(t, w.exists(id), true)
}

func TestKeepHouse_ExpiresKeysAfterTheirWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enqueueOnce("a")
	w.clock.Advance(7 * day)
	equal(t, w.keepHouse(house).KeysExpired, int64(0))
	w.clock.Advance(time.Microsecond)
	equal(t, w.keepHouse(house).KeysExpired, int64(1))
	equal(t, w.enqueueOnce("a").Duplicate, false)
}
