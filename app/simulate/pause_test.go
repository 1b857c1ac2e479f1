package simulate

import (
	"context"
	"strings"
	"testing"

	"github.com/holdfast-pg/holdfast/app/orders"
	"github.com/holdfast-pg/holdfast/domain"
)

// A model whose fence lets everything pass loses the update, and the page says so: the numbers
// are those of the run.
func TestPause_FenceThatDoesNotBiteShows(t *testing.T) {
	preset := pause()
	whole := page(t, played(t, preset.Name, 1))
	preset.scenes[1].set = func(s *stage) {
		s.guard = func(context.Context, string, domain.Claim) error { return nil }
		pauseSet(s)
	}
	report, err := preset.play(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	planted := report.Scenes[1]
	if planted.Counts.LostUpdates != 1 || planted.Counts.WritesRefused != 0 || !strings.HasSuffix(planted.Outcome[0], "its label says "+orders.OldAddress) {
		t.Errorf("%+v", planted)
	}
	if !strings.Contains(report.Lesson, "and 1 with it") || strings.Contains(whole, report.Lesson) {
		t.Errorf("it teaches the same: %s", report.Lesson)
	}
}
