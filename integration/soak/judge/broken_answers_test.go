package judge

import (
	"slices"
	"time"

	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

// badEnqueues are wrong about what was enqueued.
var badEnqueues = []badRun{
	{"acknowledged enqueue is not in the log", kept, nil, func(s *story) { s.job().tellEnqueue(history.OK) }},
	{"acknowledged duplicate is not in the log", kept, nil, func(s *story) {
		l := s.enqueue().finish("w")
		l.tellEnqueue(history.Duplicate).Marker = "elsewhere"
	}},
	{"job of an enqueue without an answer is gone at the end", kept, nil, func(s *story) {
		s.job().insert().tellEnqueue(history.Ambiguous).Job = ""
		s.lives = s.lives[:len(s.lives)-1]
	}},
	{"enqueue without an answer is in the log without its job", kept, nil, func(s *story) {
		l := s.job()
		s.commit(history.Change{What: history.Mark, Marker: l.marker})
		l.tellEnqueue(history.Ambiguous)
	}},
	{"completed job is gone at the end", kept, nil, func(s *story) {
		s.enqueue().finish("w")
		s.lives = s.lives[:len(s.lives)-1]
	}},
	{"job is in both tables at the end", kept, nil, func(s *story) {
		l := s.enqueue()
		s.final = append(s.final, l.row)
	}},
	{"job at the end was never in the log", kept, nil, func(s *story) { s.final = append(s.final, s.job().row) }},
	{"job at the end is not as the log left it", kept, nil, func(s *story) { s.enqueue().row.Generation = 99 }},
	{"job is deleted", kept, []*promise{whoMay}, func(s *story) {
		l := s.enqueue()
		s.commit(history.Change{What: history.Delete, Table: history.Inbox, Old: &l.row})
		s.lives = s.lives[:len(s.lives)-1]
	}},

	{"job is committed without its producer's row", together, nil, func(s *story) {
		s.enqueue()
		s.changes = slices.Delete(s.changes, len(s.changes)-2, len(s.changes)-1)
	}},
	{"job is committed without its marker", together, []*promise{kept}, func(s *story) {
		s.enqueue()
		s.changes = s.changes[:len(s.changes)-1]
	}},
	{"job is committed in another transaction than its producer's row", together, nil, func(s *story) {
		s.enqueue()
		last := s.changes[len(s.changes)-2:]
		s.changes = s.changes[:len(s.changes)-2]
		s.commit(last...)
	}},
	{"producer's row is committed without its job", together, []*promise{kept}, func(s *story) {
		l := s.job()
		s.commit(history.Change{What: history.Insert, Table: history.Placed, New: &history.Row{ID: l.row.ID}, Marker: l.marker}, history.Change{What: history.Mark, Marker: l.marker})
		l.tellEnqueue(history.OK)
	}},
	{"rolled back enqueue is in the log", together, nil, func(s *story) { s.job().insert().tellEnqueue(history.RolledBack) }},
	{"enqueue that failed is in the log", together, nil, func(s *story) { s.job().insert().tellEnqueue(history.Error) }},
	{"booking completes without its ledger", together, nil, func(s *story) {
		s.book()
		s.changes = s.changes[:len(s.changes)-1]
	}},
	{"ledger is written without the completion", together, nil, func(s *story) {
		l := s.book()
		s.commit(history.Change{What: history.Insert, Table: history.Ledger, New: &history.Row{ID: l.row.ID, Generation: 77}})
	}},

	{"key makes two jobs", oncePerKey, nil, func(s *story) {
		first, second := s.enqueue(), s.job()
		second.row.IdempotencyKey = first.row.IdempotencyKey
		second.insert()
	}},
	{"duplicate is told another id", oncePerKey, []*promise{kept}, func(s *story) {
		first, second := s.enqueue(), s.job()
		second.row.IdempotencyKey = first.row.IdempotencyKey
		second.tellEnqueue(history.Duplicate).Marker = first.marker
	}},
	{"duplicate makes the job", oncePerKey, nil, func(s *story) { s.job().insert().tellEnqueue(history.Duplicate) }},
	{"two enqueues make one job", oncePerKey, nil, func(s *story) {
		s.enqueue()
		s.ops = append(s.ops, s.ops[len(s.ops)-1])
	}},
	{"job is made by another enqueue than was told", oncePerKey, nil, func(s *story) {
		l := s.job().insert()
		s.commit(history.Change{What: history.Mark, Marker: "other"})
		l.tellEnqueue(history.OK).Marker = "other"
	}},
}

// badAnswers are wrong about what a worker was told.
var badAnswers = []badRun{
	{"stale completion takes effect", fenced, nil, func(s *story) {
		s.enqueue().claim("w").execute("complete").end("complete").tellSettle("complete", history.Stale)
	}},
	{"stale retry takes effect", fenced, nil, func(s *story) {
		s.enqueue().claim("w").execute("retry").end("retry").tellSettle("retry", history.Stale)
	}},
	{"stale failure takes effect", fenced, nil, func(s *story) {
		s.enqueue().claim("w").execute("fail").end("fail").tellSettle("fail", history.Stale)
	}},
	{"stale release takes effect", fenced, nil, func(s *story) {
		s.enqueue().claim("w").end("release").tellSettle("release", history.Stale)
	}},
	{"settlement that failed takes effect", fenced, nil, func(s *story) {
		s.enqueue().claim("w").execute("fail").end("fail").tellSettle("fail", history.Error)
	}},
	{"settlement that failed took effect, of a worker that wrote everything", fenced, nil, func(s *story) {
		l := s.enqueue().claim("w").execute("complete")
		l.tellSettle("complete", history.Error)
		l.end("complete")
		s.drain("w", s.now)
	}},
	{"current claim is refused", fenced, nil, func(s *story) {
		s.enqueue().claim("w").execute("complete").tellSettle("complete", history.Stale)
	}},
	{"repeated completion is refused though the first took effect", fenced, nil, func(s *story) {
		l := s.enqueue().claim("w").execute("complete").end("complete")
		l.tellSettle("complete", history.Ambiguous)
		l.tellSettle("complete", history.Stale).Repeated = true
	}},
	{"completion is told and never happens", fenced, nil, func(s *story) {
		s.enqueue().claim("w").execute("complete").tellSettle("complete", history.OK)
	}},
	{"repeated completion is told and never happens", fenced, nil, func(s *story) {
		l := s.enqueue().claim("w").execute("complete")
		l.tellSettle("complete", history.Ambiguous)
		l.tellSettle("complete", history.OK).Repeated = true
	}},
	{"completion of an earlier claim is told as done", fenced, nil, func(s *story) {
		l := s.enqueue().claim("zombie").execute("complete")
		old := *l
		l.reclaim().finish("w")
		old.tellSettle("complete", history.OK)
	}},
	{"retry is told and the job failed", fenced, nil, func(s *story) {
		s.enqueue().claim("w").execute("fail").end("fail").tellSettle("retry", history.OK)
	}},
	{"status is told wrong", fenced, nil, func(s *story) {
		s.enqueue().claim("w").execute("retry").end("retry").tellSettle("retry", history.OK).Status = "dead_letter"
	}},
	{"claim is settled twice", fenced, nil, func(s *story) {
		s.enqueue().claim("w").execute("release").settle("release").tellSettle("release", history.OK)
	}},
	{"renewal is told and never happens", fenced, nil, func(s *story) {
		s.enqueue().claim("w").told(history.OpRenew, history.OK)
	}},
	{"renewal is told and moves nothing", fenced, nil, func(s *story) {
		l := s.enqueue().claim("w")
		l.update(func(*history.Row) {})
		l.told(history.OpRenew, history.OK)
	}},
	{"refused renewal moves the deadline", fenced, nil, func(s *story) {
		l := s.enqueue().claim("w").renew()
		s.ops[len(s.ops)-1].Outcome = history.Stale
		l.finishClaimed()
	}},
	{"ended lease is renewed", fenced, nil, func(s *story) {
		l := s.enqueue().claim("w")
		s.pass(testLease)
		l.renew().finishClaimed()
	}},
	{"renewal moves the deadline back", fenced, nil, func(s *story) {
		l := s.enqueue().claim("w")
		l.update(func(row *history.Row) { row.LeaseExpiresAt = row.LeaseExpiresAt.Add(-10 * time.Second) })
		l.finishClaimed()
	}},
	{"claim is told and never happens", fenced, nil, func(s *story) {
		l := s.enqueue()
		l.worker, l.token = "w", 500
		l.told(history.OpClaim, history.OK)
	}},
	{"claim is told twice", fenced, nil, func(s *story) {
		s.enqueue().claim("w").told(history.OpClaim, history.OK)
	}},
	{"worker settles another's claim", fenced, nil, func(s *story) {
		l := s.enqueue().claim("w").execute("complete")
		l.worker = "thief"
		l.settle("complete")
	}},
	{"log has the claim for another worker than was told", fenced, nil, func(s *story) {
		l := s.enqueue()
		l.take("w")
		l.worker = "thief"
		l.told(history.OpClaim, history.OK)
	}},
}
