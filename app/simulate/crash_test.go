package simulate

import (
	"strings"
	"testing"
)

// The numbers of the lesson are those of the run: without the kill, nothing is reclaimed and
// nothing sent twice.
func TestCrash_WithoutAKillNothingIsSentTwice(t *testing.T) {
	preset := crash()
	preset.scenes[0].set = func(s *stage) {
		crashSet(s, false, 0) // No order.
	}
	report, err := preset.play(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if counts := report.Scenes[0].Counts; counts.Repeated != 0 || counts.Reclaimed != 0 || !strings.Contains(report.Lesson, "0 receipts were sent twice") {
		t.Errorf("%+v: %s", counts, report.Lesson)
	}
}
