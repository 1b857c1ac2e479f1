package domain

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-pg/holdfast/gen"
)

// retry gives jobs with attempts left back after their delays and dead-letters the others.
func (q *Queue) retry(ctx context.Context, workerID string, group settlementGroup) (map[claimKey]Status, error) {
	set := group.fences()
	rows, err := q.queries.RetryJobs(ctx, q.planned, gen.RetryJobsParams{
		WorkerID:         workerID,
		PartitionBuckets: set.buckets,
		IDs:              set.ids,
		LeaseGenerations: set.generations,
		Delays:           group.delays(),
		Errors:           group.errors(),
	})
	if err != nil {
		return map[claimKey]Status{}, fmt.Errorf("retry %d jobs: %w", len(group.members), explain(err))
	}
	states := make(map[claimKey]Status, len(rows))
	for _, row := range rows {
		states[claimKey{row.ID.Bytes, row.LeaseGeneration}] = row.Status
	}
	return states, nil
}

// fail ends jobs for good.
func (q *Queue) fail(ctx context.Context, workerID string, group settlementGroup) (map[claimKey]Status, error) {
	set := group.fences()
	rows, err := convertRows(q.queries.FailJobs(ctx, q.planned, gen.FailJobsParams{
		WorkerID:         workerID,
		PartitionBuckets: set.buckets,
		IDs:              set.ids,
		LeaseGenerations: set.generations,
		Errors:           group.errors(),
	}))
	if err != nil {
		return map[claimKey]Status{}, fmt.Errorf("fail %d jobs: %w", len(group.members), explain(err))
	}
	return allInState(rows, StatusFailed), nil
}

// release gives jobs back after their delays and refunds the attempt. Those whose outcome names
// an event leave one.
func (q *Queue) release(ctx context.Context, workerID string, group settlementGroup) (map[claimKey]Status, error) {
	set := group.fences()
	rows, err := convertRows(q.queries.ReleaseJobs(ctx, q.planned, gen.ReleaseJobsParams{
		WorkerID:         workerID,
		PartitionBuckets: set.buckets,
		IDs:              set.ids,
		LeaseGenerations: set.generations,
		Delays:           group.delays(),
		Events:           group.events(),
		Details:          group.errors(),
	}))
	if err != nil {
		return map[claimKey]Status{}, fmt.Errorf("release %d jobs: %w", len(group.members), explain(err))
	}
	return allInState(rows, StatusPending), nil
}

func (g settlementGroup) delays() []time.Duration {
	delays := make([]time.Duration, len(g.members))
	for i, member := range g.members {
		delays[i] = member.Outcome.Delay
	}
	return delays
}

func (g settlementGroup) errors() []string {
	texts := make([]string, len(g.members))
	for i, member := range g.members {
		texts[i] = member.Outcome.Error
	}
	return texts
}

func (g settlementGroup) events() []string {
	events := make([]string, len(g.members))
	for i, member := range g.members {
		events[i] = string(member.Outcome.Event)
	}
	return events
}
