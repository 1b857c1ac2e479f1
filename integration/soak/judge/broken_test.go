package judge

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

// badRun breaks a promise, added to a whole run. Some cannot help breaking another one as well.
type badRun struct {
	name    string
	breaks  *promise
	besides []*promise
	act     func(*story)
}

var bad = slices.Concat(badEnqueues, badAnswers, badMoves)

// badMoves show in the log, or in the sink.
var badMoves = []badRun{
	{"job is completed twice", completeOnce, []*promise{whoMay}, func(s *story) {
		l := s.enqueue().finish("w")
		row := l.row
		s.commit(history.Change{What: history.Insert, Table: history.Archive, New: &row})
	}},
	{"job is completed without a run", completeOnce, nil, func(s *story) { s.enqueue().claim("w").end("complete") }},
	{"job is completed after a run that failed", completeOnce, nil, func(s *story) {
		s.enqueue().claim("w").execute("retry").end("complete")
	}},
	{"completion is sent before the run returns", completeOnce, nil, func(s *story) {
		l := s.enqueue().claim("w")
		l.settle("complete").execute("complete")
	}},

	{"claim before the backoff has passed", comesBack, nil, func(s *story) {
		l := s.enqueue()
		l.update(func(row *history.Row) { row.AvailableAt = s.now.Add(time.Hour) })
		l.finish("w")
	}},

	{"running lease is reclaimed", neverEarly, nil, func(s *story) { s.enqueue().claim("w").seize().finish("w") }},
	{"renewed lease is reclaimed at its first deadline", neverEarly, nil, func(s *story) {
		l := s.enqueue().claim("w")
		first := l.row.LeaseExpiresAt
		s.pass(testLease / 2)
		l.renew()
		s.now = first
		l.seize()
	}},
	{"running lease is dead-lettered", neverEarly, nil, func(s *story) {
		l := s.enqueue()
		for range 2 {
			l.claim("w").execute("retry").settle("retry")
		}
		l.claim("w").seize()
	}},

	{"two of a lane at once", inOrder, nil, func(s *story) {
		first, second := s.enqueueInLane("b"), s.enqueueInLane("b")
		first.claim("w")
		second.finish("w")
		first.finishClaimed()
	}},
	{"second of a lane passes the first", inOrder, nil, func(s *story) {
		s.enqueueInLane("b")
		s.enqueueInLane("b").finish("w")
	}},
	{"second of a lane passes the first, which waits for its retry", inOrder, nil, func(s *story) {
		first, second := s.enqueueInLane("b"), s.enqueueInLane("b")
		first.claim("w").execute("retry").settle("retry")
		second.finish("w")
	}},

	{"generation does not grow", tokensGrow, nil, func(s *story) {
		s.pass(time.Second)
		s.tokens += 10
		s.enqueue().finish("w")
		s.tokens -= 5
		s.enqueue().finish("w")
		s.tokens += 5
	}},
	{"generation is given to two jobs", tokensGrow, []*promise{fenced}, func(s *story) {
		s.enqueue().claim("w")
		s.tokens--
		s.enqueue().claim("w")
	}},

	{"claim spends no attempt", bounded, nil, func(s *story) {
		l := s.enqueue()
		l.s.tokens++
		l.update(func(row *history.Row) {
			row.Status, row.ClaimedBy, row.ClaimedAt, row.LeaseExpiresAt, row.Generation = "processing", "w", s.now, s.now.Add(testLease), s.tokens
		})
	}},
	{"release refunds two attempts", bounded, nil, func(s *story) {
		l := s.enqueue().claim("w").execute("retry").settle("retry").claim("w")
		l.update(func(row *history.Row) { free(row); row.Status, row.Attempts = "pending", 0 })
		l.tellSettle("release", history.OK)
	}},
	{"attempts pass their bound", bounded, nil, func(s *story) {
		l := s.enqueue()
		for range 3 {
			l.claim("w").execute("retry").end("retry")
			l.row.Status = "pending"
			s.changes[len(s.changes)-1].New.Status = "pending"
			l.tellSettle("retry", history.OK)
		}
		l.claim("w")
	}},
	{"job is dead-lettered with attempts left", bounded, nil, func(s *story) {
		l := s.enqueue().claim("w").execute("retry")
		l.row.MaxAttempts, s.changes[len(s.changes)-1].New.MaxAttempts = 1, 3
		l.update(func(row *history.Row) { free(row); row.Status, row.LastError = "dead_letter", "enough" })
		for _, row := range []*history.Row{&l.row, s.changes[len(s.changes)-1].Old, s.changes[len(s.changes)-1].New} {
			row.MaxAttempts = 3
		}
		l.tellSettle("retry", history.OK)
	}},
	{"claim starts two handlers", bounded, nil, func(s *story) {
		l := s.enqueue().claim("w")
		l.told(history.OpRunBegin, "")
		l.execute("complete").settle("complete")
	}},
	{"worker is told another attempt", bounded, nil, func(s *story) {
		l := s.enqueue()
		l.take("w")
		l.attempt = 2
		l.told(history.OpClaim, history.OK)
		l.finishClaimed()
	}},

	{"worker is gone and holds a job", nothingLeft, nil, func(s *story) {
		s.enqueue().claim("gone")
		s.drain("gone", s.now)
	}},
	{"worker is gone and holds a job until later", nothingLeft, nil, func(s *story) {
		l := s.enqueue().claim("gone")
		s.drain("gone", s.now)
		l.reclaim()
	}},
	{"claim for a worker that is gone", nothingLeft, nil, func(s *story) {
		s.drain("gone", s.now)
		l := s.enqueue()
		l.take("gone")
		l.end("release")
	}},

	{"sink accepts a lower token", effects, nil, func(s *story) {
		l := s.enqueue().claim("w")
		old := *l
		l.reclaim().claim("w").effect(history.OK)
		old.effect(history.OK)
	}},
	{"sink refuses the highest token", effects, nil, func(s *story) { s.enqueue().claim("w").effect(history.OK).effect(history.Refused) }},
	{"two workers write with one token", effects, []*promise{fenced}, func(s *story) {
		l := s.enqueue().claim("w").effect(history.OK)
		l.worker = "thief"
		l.effect(history.OK)
	}},
	{"effect is told and is not in the sink", effects, nil, func(s *story) {
		s.enqueue().claim("w").effect(history.OK)
		s.effects = s.effects[:len(s.effects)-1]
	}},
	{"key's resource accepts a lower token of another job", effects, nil, func(s *story) {
		first, second := s.enqueue().claim("w").effect(history.OK), s.enqueue().claim("w").effect(history.OK)
		s.effects = s.effects[:len(s.effects)-2]
		for _, l := range []*life{second, first} {
			s.effects = append(s.effects, history.Effect{Resource: "key", Token: l.token, Job: l.row.ID, WorkerID: "w", Accepted: true})
		}
	}},

	{"pending job is completed", whoMay, nil, func(s *story) { s.commit(s.enqueue().leave()...) }},
	{"completed job is pending again", whoMay, nil, func(s *story) {
		l := s.enqueue().finish("w")
		l.row.Status, l.row.Place = "pending", history.Inbox
		s.pass(time.Second)
		row := l.row
		s.commit(history.Change{What: history.Insert, Table: history.Inbox, New: &row})
	}},
	{"claim is taken over by another worker", whoMay, nil, func(s *story) {
		s.enqueue().claim("w").update(func(row *history.Row) { row.ClaimedBy = "thief" })
	}},
	{"job changes its queue", whoMay, nil, func(s *story) {
		s.enqueue().update(func(row *history.Row) { row.Queue = "other" })
	}},
	{"job is redriven and nobody asked", whoMay, nil, func(s *story) {
		s.enqueue().claim("w").execute("fail").settle("fail").redrive()
		s.ops = s.ops[:len(s.ops)-1]
	}},
	{"redrive is told and never happens", whoMay, nil, func(s *story) {
		l := s.enqueue().claim("w").execute("fail").settle("fail")
		s.tell(history.Op{Op: history.OpRedrive, Outcome: history.OK, Job: l.row.ID})
	}},
	{"dead job keeps its holder", whoMay, nil, func(s *story) {
		s.enqueue().claim("w").execute("fail").update(func(row *history.Row) { row.Status = "failed" })
	}},
	{"processed job has no deadline", whoMay, nil, func(s *story) {
		s.enqueue().claim("w")
		s.changes[len(s.changes)-1].New.LeaseExpiresAt = time.Time{}
	}},
	{"log has a gap", whoMay, []*promise{fenced}, func(s *story) {
		s.enqueue().claim("w").renew().execute("release").settle("release")
		s.changes = slices.DeleteFunc(s.changes, func(c history.Change) bool {
			return c.New != nil && c.New.ID == s.lives[len(s.lives)-1].row.ID && c.New.Status == "processing"
		})
	}},
}

// finishClaimed is the rest of a life that is claimed.
func (l *life) finishClaimed() { l.execute("complete").settle("complete") }

func TestJudge_BrokenPromiseIsNamed(t *testing.T) {
	t.Parallel()
	for _, test := range bad {
		t.Run(strings.ReplaceAll(test.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			s := whole(t)
			test.act(s)
			report := s.judge()
			if report.Verdict != Violated {
				t.Fatalf("the verdict is %s, want %s", report.Verdict, Violated)
			}
			allowed := append([]*promise{test.breaks}, test.besides...)
			var named bool
			for _, violation := range report.Violations {
				named = named || violation.Promise == test.breaks.name
				if !slices.ContainsFunc(allowed, func(p *promise) bool { return p.name == violation.Promise }) {
					t.Errorf("also: %s", violation)
				}
			}
			if !named {
				t.Errorf("%s is not named: %v", test.breaks.name, report.Violations)
			}
		})
	}
}

// Each rule has a history that breaks it.
func TestJudge_EveryPromiseIsBrokenByATest(t *testing.T) {
	t.Parallel()
	for _, rule := range allRules {
		if !slices.ContainsFunc(bad, func(each badRun) bool { return each.breaks == rule.promise }) {
			t.Errorf("no history breaks %s", rule.promise.name)
		}
	}
}

// The sentences are those of docs/guarantees.md.
func TestJudge_SpeaksTheWordsOfTheGuarantees(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Join(strings.Fields(string(text)), " ")
	for _, rule := range allRules {
		if !strings.Contains(words, "## "+rule.promise.name+" ") {
			t.Errorf("there is no %q", rule.promise.name)
		}
		if rule.promise != whoMay && !strings.Contains(words, rule.promise.sentence) {
			t.Errorf("%s does not say %q", rule.promise.name, rule.promise.sentence)
		}
	}
}
