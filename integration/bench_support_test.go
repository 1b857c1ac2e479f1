package integration

import (
	"testing"

	"github.com/holdfast-pg/holdfast/domain/plans"
)

func TestBench_SupportMeasuresEveryStatementOfAPerson(t *testing.T) {
	t.Parallel()
	d := isolate(t, "bench", "support", "--size", "small", "-o", "json")
	d.start(t).ends(t, 0)
	figures := benchFigures(t, d)["support 20,000 jobs"]
	for _, statement := range plans.Support() {
		wantFigure(t, figures, statement.Name+" p50", 0.01, 60_000)
		wantFigure(t, figures, statement.Name+" p99", 0.01, 60_000)
		wantFigure(t, figures, statement.Name+" buffers", 1, plans.SupportBuffers)
	}
	d.leavesNothing(t)
}
