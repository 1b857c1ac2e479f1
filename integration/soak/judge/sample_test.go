package judge

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

// Without any rule, and so without the log, what workers were told of one job contradicts
// itself.
func TestSamples_AnswersThatNoOrderExplains(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(s *story){
		"completion of an earlier claim": func(s *story) {
			l := s.enqueue().claim("zombie").execute("complete")
			old := *l
			l.reclaim().claim("w")
			s.pass(time.Second)
			old.tellSettle("complete", history.OK)
		},
		"renewal of an earlier claim": func(s *story) {
			l := s.enqueue().claim("zombie")
			old := *l
			l.reclaim().claim("w")
			s.pass(time.Second)
			old.told(history.OpRenew, history.OK)
		},
		"two completions": func(s *story) {
			l := s.enqueue().finish("w")
			s.pass(time.Second)
			l.tellSettle("complete", history.OK)
		},
		"claim of a completed job": func(s *story) {
			l := s.enqueue().finish("w")
			s.pass(time.Second)
			l.token++
			l.told(history.OpClaim, history.OK)
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			act(s)
			report, err := run(t.Context(), s.write(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var named bool
			for _, violation := range report.Violations {
				named = named || strings.Contains(violation.Seen, "no order of its") && violation.Job != ""
			}
			if !named {
				t.Errorf("the violations are %v", report.Violations)
			}
		})
	}
}

func TestSamples_AnswersOfAWholeRunHaveAnOrder(t *testing.T) {
	t.Parallel()
	report := whole(t).judge()
	if report.Counts.Sampled < 10 || report.Counts.Undecided > 0 || len(report.Violations) > 0 {
		t.Errorf("%d jobs, %d undecided, %v", report.Counts.Sampled, report.Counts.Undecided, report.Violations)
	}
}
