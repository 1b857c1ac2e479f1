package judge

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

// parts are what a whole run goes through, each for itself.
var parts = []struct {
	state state
	act   func(*story)
}{
	{staleSettlement, func(s *story) {
		l := s.enqueue().claim("zombie").execute("complete")
		l.reclaim()
		l.tellSettle("complete", history.Stale)
		l.finish("w")
	}},
	{staleEffect, func(s *story) {
		l := s.enqueue().claim("zombie")
		old := *l
		l.reclaim().claim("w").execute("complete").effect(history.OK)
		old.effect(history.Refused)
		l.settle("complete")
	}},
	{leaseReclaimed, func(s *story) { s.enqueue().claim("dead").reclaim().finish("w") }},
	{renewalHeld, func(s *story) {
		l := s.enqueue().claim("w").renew()
		s.pass(testLease - 3*time.Second)
		l.renew()
		s.pass(5 * time.Second)
		l.execute("complete").settle("complete")
	}},
	{cutShort, func(s *story) {
		l := s.enqueue().claim("w")
		l.told(history.OpRunBegin, "")
		op := l.told(history.OpRunEnd, "")
		op.Verdict, op.CutShort = "retry", true
		l.settle("retry").finish("w")
	}},
	{enqueueCommitted, func(s *story) {
		l := s.job().insert()
		l.tellEnqueue(history.Ambiguous).Job = ""
		l.finish("w")
	}},
	{enqueueNot, func(s *story) { s.job().tellEnqueue(history.Ambiguous) }},
	{settledBefore, func(s *story) {
		l := s.enqueue().claim("w").execute("complete").end("complete")
		l.tellSettle("complete", history.Ambiguous)
		s.pass(time.Second)
		l.tellSettle("complete", history.OK).Repeated = true
	}},
	{ranTwice, func(s *story) {
		s.enqueue().claim("w").execute("retry").settle("retry").finish("w")
	}},
	{keyOfTwo, func(s *story) {
		l := s.enqueue()
		s.commit(history.Change{What: history.Insert, Table: history.Placed, New: &history.Row{ID: l.row.ID}, Marker: "again"}, history.Change{What: history.Mark, Marker: "again"})
		op := l.tellEnqueue(history.Duplicate)
		op.Process, op.Marker = "producer-2", "again"
		l.finish("w")
	}},
	{laneWaited, func(s *story) {
		head, next := s.enqueueInLane("a"), s.enqueueInLane("a")
		head.claim("w").execute("retry").settle("retry").finish("w")
		next.finish("w")
	}},
	{diedSpent, func(s *story) {
		l := s.enqueue()
		for range 2 {
			l.claim("w").execute("retry").settle("retry")
		}
		l.claim("w").reclaim()
	}},
	{failedForGood, func(s *story) { s.enqueue().claim("w").execute("fail").settle("fail") }},
	{drainEnded, func(s *story) {
		l := s.enqueue().claim("leaver")
		began := s.now
		l.settle("release")
		s.drain("leaver", began)
		l.finish("w")
	}},
	{redrivenDone, func(s *story) {
		s.enqueue().claim("w").execute("fail").settle("fail").redrive().finish("w")
	}},
	{crashed, func(s *story) {
		s.faults = append(s.faults, history.Fault{Kind: history.ServerCrash, Begin: s.now, End: s.now})
		s.enqueue().finish("w")
	}},
	{cutBefore, func(s *story) { s.faults = append(s.faults, history.Fault{Kind: history.CutBeforeCommit}) }},
	{cutAfter, func(s *story) { s.faults = append(s.faults, history.Fault{Kind: history.CutAfterCommit}) }},
	{stateCount, func(s *story) { // Nothing in particular, and of everything else that can be.
		s.enqueue().claim("w").execute("complete").effect(history.OK).settle("complete")
		s.job().tellEnqueue(history.RolledBack)
		s.book().effect(history.OK)
		s.tidied()
		s.poked()
	}},
}

// book is a job that completes with HandleTx.
func (s *story) book() *life {
	l := s.job()
	l.row.Kind = history.Booking
	l.insert().tellEnqueue(history.OK)
	l.claim("w").told(history.OpRunBegin, "")
	s.pass(time.Second)
	s.commit(append(l.leave(), history.Change{What: history.Insert, Table: history.Ledger, New: &history.Row{ID: l.row.ID, Generation: l.token}})...)
	return l
}

// tidied is a job that moves within the archive.
func (s *story) tidied() {
	row := s.enqueue().finish("w").row
	s.pass(time.Second)
	s.commit(history.Change{What: history.Insert, Table: history.Archive, New: &row}, history.Change{What: history.Delete, Table: history.Archive, Old: &row})
}

// poked is a job that waited for its backoff, and need not.
func (s *story) poked() {
	l := s.enqueue().claim("w").execute("retry").settle("retry")
	l.update(func(row *history.Row) { row.AvailableAt = row.AvailableAt.Add(time.Hour) })
	l.update(func(row *history.Row) { row.AvailableAt = s.now })
	l.finish("w")
}

func whole(t *testing.T) *story {
	t.Helper()
	s := newStory(t)
	for _, part := range parts {
		part.act(s)
	}
	return s
}

func TestJudge_WholeRunIsGreen(t *testing.T) {
	t.Parallel()
	report := whole(t).judge()
	if report.Verdict != Green {
		t.Errorf("the verdict is %s", report.Verdict)
	}
	var printed strings.Builder
	if err := report.Write(&printed); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(printed.String()) {
		if len(line) > width+1 {
			t.Errorf("too wide: %s", line)
		}
	}
	if t.Failed() {
		t.Log(printed.String())
	}
}

// Each state is reached by what is made for it, and a run without it shows too little.
func TestJudge_RunThatMissesAStateIsInvalid(t *testing.T) {
	t.Parallel()
	reaches := func(report Report) (states []state) {
		for at, reached := range report.Reached {
			if reached.Count > 0 {
				states = append(states, state(at))
			}
		}
		return states
	}
	alone := make([][]state, len(parts))
	for i, part := range parts {
		s := newStory(t)
		part.act(s)
		report := s.judge()
		alone[i] = reaches(report)
		if report.Verdict != Invalid || part.state != stateCount && !slices.Contains(alone[i], part.state) {
			t.Errorf("the part of %d is %s and reaches %v", part.state, report.Verdict, alone[i])
		}
	}
	for missing := range stateCount {
		t.Run(strings.ReplaceAll(stateNames[missing], " ", "-"), func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			for i, part := range parts {
				if !slices.Contains(alone[i], missing) {
					part.act(s)
				}
			}
			report := s.judge()
			if report.Verdict != Invalid || slices.Contains(reaches(report), missing) {
				t.Errorf("the verdict is %s, reached %v", report.Verdict, report.Reached)
			}
		})
	}
}
