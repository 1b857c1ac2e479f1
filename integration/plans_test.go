package integration

import (
	"fmt"
	"os"
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
					checkPlans(t, tx, statement)
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

// checkPlans checks a statement for sets of all sizes.
func checkPlans(t *testing.T, tx pgx.Tx, statement plans.Statement) {
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
		for _, violation := range violations {
			t.Errorf("%s\n%s", violation, violation.Plan)
		}
	}
}
