package integration

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/plans"
)

// planSets are how many members a set has.
var planSets = []int{1, 25, 500}

// planSizes are how many jobs the inbox holds. `make plans` goes up to a million, which takes
// another half a minute to fill.
func planSizes() []int {
	sizes := []int{500, 5_000, 20_000, 100_000, 300_000}
	if os.Getenv("HOLDFAST_TEST_PLANS") == "full" {
		sizes = append(sizes, 1_000_000)
	}
	return sizes
}

// Every hot statement keeps to its indexes, whatever the size of the inbox and whatever the
// planner was told of it.
func TestPlans_HotStatementsKeepToTheirIndexes(t *testing.T) {
	t.Parallel()
	backlog := newPlanBacklog(t)
	for _, size := range planSizes() {
		began := time.Now()
		backlog.fill(t, size)
		filled := time.Since(began)
		for _, statistics := range planStatistics {
			t.Run(fmt.Sprintf("%d jobs, statistics %s", size, statistics.name), func(t *testing.T) {
				tx := statistics.pretend(t, backlog.conn)
				for _, statement := range hotStatements() {
					checkPlans(t, tx, statement, awaited(statement, statistics.name))
				}
			})
		}
		t.Logf("%d jobs: filled in %s, checked in %s", size, filled, time.Since(began)-filled)
	}
}

// hotStatements are those of the contract, and claims by a worker that has others beside it.
func hotStatements() []plans.Statement {
	statements := plans.Contract()
	for _, owned := range []int{1, 64} {
		statements = append(statements, plans.ClaimJobs(domain.ClaimRequest{Buckets: everyBucket()[:owned]}))
	}
	return statements
}

// awaited is the violation that is known of a statement; "" for none.
func awaited(statement plans.Statement, statistics string) string {
	if statement.Name == "ClaimJobs" && statistics == drained {
		return "walks all of inbox_pkey"
	}
	return ""
}

// checkPlans checks a statement for sets of all sizes. What is awaited must be found, so that
// the exception goes when the mistake does.
func checkPlans(t *testing.T, tx pgx.Tx, statement plans.Statement, awaited string) {
	t.Helper()
	sets := planSets
	if !statement.Set {
		sets = sets[:1]
	}
	for _, set := range sets {
		violations, err := plans.Check(t.Context(), tx, statement, set)
		if err != nil {
			t.Fatal(err)
		}
		isAwaited := func(violation plans.Violation) bool { return violation.Says == awaited }
		if awaited != "" && !slices.ContainsFunc(violations, isAwaited) {
			t.Errorf("%s for %d no longer %s: delete it from awaited", statement.Name, set, awaited)
		}
		for _, violation := range slices.DeleteFunc(violations, isAwaited) {
			t.Errorf("%s\n%s", violation, violation.Plan)
		}
	}
}
