package integration

import (
	"testing"

	"github.com/holdfast-pg/holdfast/app/tune"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// What is faster is not a question for a machine that runs other tests: that both work is.
func TestBench_TunedWorksOffEveryShapeWithBothSettings(t *testing.T) {
	t.Parallel()
	d := isolate(t, "bench", "tuned", "--size", "small", "--jobs", "24", "-o", "json", "--database-url", pgtest.New(t).DirectURL)
	d.start(t).ends(t, 0)
	trials := benchFigures(t, d)
	for _, shape := range tune.Shapes() {
		for _, settings := range []string{", defaults", ", tuned"} {
			figures := trials["tuned "+shape.Name+settings]
			wantFigure(t, figures, "jobs", 24, 24)
			wantFigure(t, figures, "rate", 0.5, 1e6)
		}
	}
	if len(trials) != 6 {
		t.Errorf("%d trials, want 6", len(trials))
	}
}
