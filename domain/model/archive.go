package model

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// housekeepingBatch is how many workers one round buries or forgets at most. The database
// does the other chores in batches too, but until nothing is left.
const housekeepingBatch = 1000

const oneDay = 24 * time.Hour

// KeepHouse does everything that must be done from time to time but reclaiming.
func (q *Queue) KeepHouse(ctx context.Context, rules domain.HouseRules) (domain.HouseReport, error) {
	if err := ctx.Err(); err != nil {
		return domain.HouseReport{}, fmt.Errorf("keep house: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	// In the order of the statements: what one does, the next one sees.
	var report domain.HouseReport
	report.WorkersDied = q.buryWorkers(rules.WorkerTTL)
	report.WorkersForgotten = q.forgetWorkers(rules.DeadWorkersFor)
	report.BellsDisarmed = q.disarmDead()
	report.DaysCreated = q.createArchiveDays(rules.ArchiveAhead)
	report.DaysDropped = q.dropArchiveDays()
	report.JobsArchived = q.archiveCompleted()
	report.KeysExpired = q.expireKeys()
	report.MarksExpired = q.expireMarks(rules.MarksFor)
	report.FencesExpired = q.expireFences(rules.FencesFor)
	report.EventsExpired = q.expireEvents(rules.EventsFor)
	return report, nil
}

func (q *Queue) moveToArchive(job *domain.JobRecord) {
	delete(q.inbox, job.ID)
	job.Archived = true
	q.archive[job.ID] = *job
}

// createArchiveDays makes the partitions that are missing from today to so many days ahead;
// from an earlier day, if there is a job of that day without a partition.
func (q *Queue) createArchiveDays(ahead int) (created int64) {
	today := dayOf(q.now())
	first := today
	for _, job := range q.archive {
		if day := dayOf(*job.CompletedAt); day.Before(first) && !q.days[day] {
			first = day
		}
	}
	last := today.Add(time.Duration(ahead) * oneDay)
	for day := first; !day.After(last); day = day.Add(oneDay) {
		if !q.days[day] {
			q.days[day] = true
			created++
		}
	}
	return created
}

// dropArchiveDays drops the partitions that every queue's retention has passed, with the
// jobs in them. A job whose day has no partition stays until it gets one.
func (q *Queue) dropArchiveDays() (dropped int64) {
	since := q.now().Add(-q.longestRetention())
	for day := range q.days {
		if day.Add(oneDay).Before(since) {
			delete(q.days, day)
			dropped++
			for id, job := range q.archive {
				if dayOf(*job.CompletedAt).Equal(day) {
					delete(q.archive, id)
				}
			}
		}
	}
	return dropped
}

func (q *Queue) longestRetention() (longest time.Duration) {
	for _, settings := range q.queues {
		longest = max(longest, settings.Retention)
	}
	return longest
}

// dayOf is the midnight at which the time's day began, in UTC.
func dayOf(t time.Time) time.Time {
	return t.UTC().Truncate(oneDay)
}

// archiveCompleted moves completed jobs out of the inbox that were kept there for long enough.
func (q *Queue) archiveCompleted() (archived int64) {
	now := q.now()
	for _, job := range q.inbox {
		if job.CompletedAt != nil && job.CompletedAt.Before(now.Add(-q.queues[job.Queue].KeepFor)) {
			q.moveToArchive(job)
			archived++
		}
	}
	return archived
}

// expireKeys frees the idempotency keys whose window has passed.
func (q *Queue) expireKeys() (expired int64) {
	now := q.now()
	for key, held := range q.keys {
		if held.expires.Before(now) {
			delete(q.keys, key)
			expired++
		}
	}
	return expired
}
