package bench

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestStatementName_IsThatOfTheComment(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		"-- name: ClaimJobs :many\nWITH served": "ClaimJobs",
		"SELECT 1":                              "",
		"-- name: ":                             "",
		"":                                      "",
	} {
		if got := statementName(sql); got != want {
			t.Errorf("%q has the name %q, want %q", sql, got, want)
		}
	}
}

func TestStopwatch_TimesTheStatementAndNotWhatPlansIt(t *testing.T) {
	t.Parallel()
	const plan, claim = "-- name: PlanByIndex :exec\nSELECT", "-- name: ClaimJobs :many\nWITH"
	var batch pgx.Batch
	batch.Queue(plan)
	batch.Queue(claim)
	watch := newStopwatch()
	ctx := watch.TraceBatchStart(t.Context(), nil, pgx.TraceBatchStartData{Batch: &batch})
	for sql, tag := range map[string]string{plan: "SELECT 1", claim: "UPDATE 25"} {
		watch.TraceBatchQuery(ctx, nil, pgx.TraceBatchQueryData{SQL: sql, CommandTag: pgconn.NewCommandTag(tag)})
	}
	watch.finish(ctx, nil)
	watch.finish(ctx, context.Canceled)

	claims := watch.work("ClaimJobs")
	if claims.Rows != 25 || claims.Times.counts.TotalCount() != 1 || claims.Spent <= 0 {
		t.Errorf("claims: %d rows in %d batches that took %s", claims.Rows, claims.Times.counts.TotalCount(), claims.Spent)
	}
	if sent := watch.sent.Load(); sent != 2 {
		t.Errorf("%d statements were counted, want both of the batch", sent)
	}
	if plans := watch.work("PlanByIndex"); plans.Times.counts.TotalCount() != 0 {
		t.Error("the plan in front was timed as a statement of its own")
	}
}
