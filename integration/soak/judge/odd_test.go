package judge

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

// odd is what faults make of a run that keeps every promise.
var odd = map[string]func(*story){
	"retry of a worker that was killed before it wrote": func(s *story) {
		s.enqueue().claim("killed").execute("retry").end("retry").finish("w")
	},
	"completion of a worker that was killed before it wrote": func(s *story) {
		s.enqueue().claim("killed").execute("complete").end("complete")
	},
	"completion that failed is sent again by a worker that is killed before it writes": func(s *story) {
		l := s.enqueue().claim("killed").execute("complete")
		l.tellSettle("complete", history.Error)
		l.end("complete")
	},
	"renewal of a worker that was killed before it wrote": func(s *story) {
		l := s.enqueue().claim("killed").renew()
		s.ops = s.ops[:len(s.ops)-1]
		l.reclaim().finish("w")
	},
	"booking of a worker that was killed before it wrote": func(s *story) { s.book() },
	"claim of which nobody was told is given back at the end of a drain": func(s *story) {
		l := s.enqueue()
		l.take("forgetful")
		l.end("release")
		s.drain("forgetful", s.now.Add(-time.Second))
		l.finish("w")
	},
	"claim of which nobody was told is reclaimed": func(s *story) {
		l := s.enqueue()
		l.take("dead")
		l.reclaim().finish("w")
	},
	"settlement after the lease has ended, before the reclaim": func(s *story) {
		l := s.enqueue().claim("late")
		s.pass(2 * testLease)
		l.told(history.OpRenew, history.Stale)
		l.finishClaimed()
	},
	"repeated retry is refused, because another claim came meanwhile": func(s *story) {
		l := s.enqueue().claim("cut").execute("retry").end("retry")
		l.tellSettle("retry", history.Ambiguous)
		old := *l
		l.claim("w")
		s.pass(time.Second)
		old.tellSettle("retry", history.Stale).Repeated = true
		l.finishClaimed()
	},
	"repeated failure is refused, because the job was redriven meanwhile": func(s *story) {
		l := s.enqueue().claim("cut").execute("fail").end("fail")
		l.tellSettle("fail", history.Ambiguous)
		l.redrive()
		l.tellSettle("fail", history.Stale).Repeated = true
		l.finish("w")
	},
	"repeated release finds a reclaim": func(s *story) {
		l := s.enqueue().claim("cut")
		l.tellSettle("release", history.Ambiguous)
		l.reclaim()
		l.tellSettle("release", history.OK).Repeated = true
		l.finish("w")
	},
	"repeated completion does what the first did not": func(s *story) {
		l := s.enqueue().claim("cut").execute("complete")
		l.tellSettle("complete", history.Ambiguous)
		l.end("complete").tellSettle("complete", history.OK).Repeated = true
	},
	"booking that committed without an answer is then given back, in vain": func(s *story) {
		s.book().tellSettle("retry", history.Stale)
	},
	"lower seq commits after a higher one was claimed": func(s *story) {
		low, high := s.job(), s.job()
		for _, l := range []*life{low, high} {
			l.row.Queue, l.row.PartitionKey, l.row.Ordered = "lanes", "late", true
		}
		high.insert().tellEnqueue(history.OK)
		began := s.now
		low.insert()
		high.take("w")
		high.s.changes[len(s.changes)-1].New.ClaimedAt = began
		high.row.ClaimedAt = began
		low.tellEnqueue(history.OK)
		high.told(history.OpClaim, history.OK)
		high.finishClaimed()
		low.finish("w")
	},
	"redriven head runs after those behind it": func(s *story) {
		head, next := s.enqueueInLane("r"), s.enqueueInLane("r")
		head.claim("w").execute("fail").settle("fail")
		next.claim("w")
		head.redrive()
		next.finishClaimed()
		head.finish("w")
	},
	"two retries with one error text": func(s *story) { // The second text is that of the first run.
		l := s.enqueue().claim("w").execute("retry").settle("retry").claim("w").execute("retry")
		l.update(func(row *history.Row) { free(row); back(row) })
		l.tellSettle("retry", history.OK)
	},
	"key twice in one set": func(s *story) {
		l := s.job().insert()
		placed := history.Change{What: history.Insert, Table: history.Placed, New: &history.Row{ID: l.row.ID}, Marker: "second"}
		mark := history.Change{What: history.Mark, Marker: "second"}
		for _, change := range []history.Change{placed, mark} {
			change.LSN, change.XID, change.Commit = s.changes[len(s.changes)-1].LSN, uint32(s.lsn), s.now
			s.changes = append(s.changes, change)
		}
		l.tellEnqueue(history.OK)
		l.tellEnqueue(history.Duplicate).Marker = "second"
	},
	"completed job is kept, and archived later": func(s *story) {
		l := s.enqueue().claim("w").execute("complete")
		l.update(func(row *history.Row) { free(row); row.Status = "completed" })
		l.tellSettle("complete", history.OK)
		s.pass(time.Second)
		s.commit(l.leave()...)
	},
	"claims commit in another order than their generations": func(s *story) {
		first, second := s.enqueue(), s.enqueue()
		first.claim("w")
		second.claim("w")
		a, b := s.changes[len(s.changes)-2].New, s.changes[len(s.changes)-1].New
		a.Generation, b.Generation = b.Generation, a.Generation
		b.ClaimedAt = a.ClaimedAt // They overlapped.
		first.row, second.row = *a, *b
		first.token, second.token = a.Generation, b.Generation
		s.ops[len(s.ops)-2].Generation, s.ops[len(s.ops)-1].Generation = a.Generation, b.Generation
	},
}

func TestJudge_OddButRightIsGreen(t *testing.T) {
	t.Parallel()
	for name, act := range odd {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			s := whole(t)
			act(s)
			if report := s.judge(); report.Verdict != Green {
				t.Errorf("the verdict is %s: %v", report.Verdict, report.Violations)
			}
		})
	}
}
