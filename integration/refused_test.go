package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// One result in a batch that cannot be recorded does not hold up the others.
func TestSettle_RefusedResultLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	const jobs, poison = 100, 37
	database := pgtest.New(t)
	enqueueNotes(t, database, jobs)
	database.Exec(t, fmt.Sprintf("ALTER TABLE holdfast.inbox_archive ADD CONSTRAINT no_poison CHECK (seq <> %d)", poison))
	queue := database.Queue(t)
	var settlements []domain.Settlement
	claimed := claim(t, queue, "w", jobs)
	for _, job := range claimed {
		settlements = append(settlements, domain.Settlement{Claim: job.Claim, Retention: job.Retention})
	}
	for i, answer := range queue.Settle(t.Context(), "w", settlements) {
		switch {
		case claimed[i].Seq == poison && !errors.Is(answer.Err, domain.ErrRefused):
			t.Errorf("the poisonous one: %+v, want %v", answer, domain.ErrRefused)
		case claimed[i].Seq != poison && answer != (domain.Settled{Status: domain.StatusCompleted}):
			t.Errorf("job %d: %+v, want it completed", claimed[i].Seq, answer)
		}
	}
	if archived := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox_archive"); archived != jobs-1 {
		t.Errorf("%d jobs are archived, want %d", archived, jobs-1)
	}
}

func TestWorker_ResultThatCannotBeRecordedIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	const jobs, poison = 200, 37
	database := pgtest.New(t)
	enqueueNotes(t, database, jobs, domain.MaxAttempts(1))
	database.Exec(t, fmt.Sprintf("ALTER TABLE holdfast.inbox_archive ADD CONSTRAINT no_poison CHECK (seq <> %d)", poison))
	startWorker(t, database, database.Pool, "w", quick(), holdfast.Handle(func(context.Context, holdfast.Job[note]) error { return nil }))
	untilCompleted(t, database, jobs-1)
	pgtest.Eventually(t, patience, "the last job is dead-lettered", func() bool {
		return pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox WHERE status = 'dead_letter'") == 1
	})
	if text := pgtest.Value[string](t, database, "SELECT last_error FROM holdfast.inbox"); !strings.Contains(text, "no_poison") {
		t.Errorf("the last error does not say what was in the way: %s", text)
	}
}
