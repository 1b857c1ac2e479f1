package judge

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

const testLease = 30 * time.Second

// story makes up a run, act by act: what an act commits, and what it tells of itself. Each
// takes a second.
type story struct {
	t       *testing.T
	now     time.Time
	lsn     int
	tokens  int64
	jobs    int
	lives   []*life
	ops     []history.Op
	changes []history.Change
	effects []history.Effect
	faults  []history.Fault
	final   []history.Row // After the lives'.
	run     history.Run
}

func newStory(t *testing.T) *story {
	t.Helper()
	return &story{t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), run: history.Run{Seed: 1, Lease: testLease, Length: time.Minute}}
}

// life is one job's.
type life struct {
	s       *story
	row     history.Row
	marker  string
	worker  string // Of the latest claim.
	token   int64
	attempt int
}

// commit adds a transaction.
func (s *story) commit(changes ...history.Change) {
	s.lsn++
	for _, change := range changes {
		change.LSN, change.XID, change.Commit = fmt.Sprintf("0/%X", s.lsn), uint32(s.lsn), s.now
		s.changes = append(s.changes, change)
	}
}

// tell adds an operation that has just ended.
func (s *story) tell(op history.Op) *history.Op {
	op.Begin, op.End = s.now.Add(-time.Millisecond), s.now.Add(time.Millisecond)
	if op.Process == "" {
		op.Process = "client"
	}
	s.ops = append(s.ops, op)
	return &s.ops[len(s.ops)-1]
}

func (s *story) pass(d time.Duration) { s.now = s.now.Add(d) }

// job makes a job that nobody has enqueued yet.
func (s *story) job() *life {
	s.jobs++
	id := fmt.Sprintf("00000000-0000-7000-8000-%012d", s.jobs)
	l := &life{s: s, marker: "m" + id, row: history.Row{
		Place: history.Inbox, ID: id, Queue: "q", PartitionKey: id, IdempotencyKey: "key-" + id, Kind: "plain", Seq: int64(s.jobs),
		Status: "pending", MaxAttempts: 3, AvailableAt: s.now,
	}}
	return l
}

func (s *story) enqueue() *life {
	l := s.job().insert()
	l.tellEnqueue(history.OK)
	return l
}

// enqueueInLane enqueues to an ordered queue.
func (s *story) enqueueInLane(key string) *life {
	l := s.job()
	l.row.Queue, l.row.PartitionKey, l.row.Ordered = "lanes", key, true
	l.insert().tellEnqueue(history.OK)
	return l
}

func (l *life) insert() *life {
	l.s.pass(time.Second)
	row := l.row
	l.s.commit(
		history.Change{What: history.Insert, Table: history.Inbox, New: &row},
		history.Change{What: history.Insert, Table: history.Placed, New: &history.Row{ID: row.ID}, Marker: l.marker},
		history.Change{What: history.Mark, Marker: l.marker},
	)
	l.s.lives = append(l.s.lives, l)
	return l
}

func (l *life) tellEnqueue(outcome string) *history.Op {
	return l.s.tell(history.Op{
		Op: history.OpEnqueue, Process: "producer", Marker: l.marker, Outcome: outcome, Job: l.row.ID, Queue: l.row.Queue, IdempotencyKey: l.row.IdempotencyKey, Kind: l.row.Kind,
	})
}

// update commits a change of the row in the inbox.
func (l *life) update(change func(row *history.Row)) {
	l.s.pass(time.Second)
	old := l.row
	change(&l.row)
	row := l.row
	l.s.commit(history.Change{What: history.Update, Table: history.Inbox, Old: &old, New: &row})
}

// told is an operation of the current claim.
func (l *life) told(name, outcome string) *history.Op {
	return l.s.tell(history.Op{
		Op: name, Outcome: outcome, Job: l.row.ID, Queue: l.row.Queue, Kind: l.row.Kind, WorkerID: l.worker, Generation: l.token, Attempt: l.attempt,
	})
}

func (l *life) take(worker string) {
	l.s.tokens++
	l.update(func(row *history.Row) {
		row.Status, row.ClaimedBy, row.ClaimedAt = "processing", worker, l.s.now
		row.LeaseExpiresAt = l.s.now.Add(testLease)
		row.Generation, row.Attempts = l.s.tokens, row.Attempts+1
	})
	l.worker, l.token, l.attempt = worker, l.row.Generation, l.row.Attempts
}

func (l *life) claim(worker string) *life {
	l.take(worker)
	l.told(history.OpClaim, history.OK)
	return l
}

// execute runs the handler.
func (l *life) execute(verdict string) *life {
	l.told(history.OpRunBegin, "")
	l.s.pass(time.Second)
	l.told(history.OpRunEnd, "").Verdict = verdict
	return l
}

func (l *life) renew() *life {
	l.update(func(row *history.Row) { row.LeaseExpiresAt = l.s.now.Add(testLease) })
	l.told(history.OpRenew, history.OK)
	return l
}

// free ends the claim in the row.
func free(row *history.Row) {
	row.ClaimedBy, row.ClaimedAt, row.LeaseExpiresAt = "", time.Time{}, time.Time{}
}

// end commits what a settlement does.
func (l *life) end(verdict string) *life {
	if verdict == "complete" {
		l.s.pass(time.Second)
		l.s.commit(l.leave()...)
		return l
	}
	l.update(func(row *history.Row) {
		free(row)
		switch verdict {
		case "fail":
			row.Status, row.LastError = "failed", fmt.Sprintf("failed under %d", row.Generation)
		case "release":
			row.Status, row.Attempts = "pending", row.Attempts-1
		case "retry":
			row.LastError = fmt.Sprintf("failed under %d", row.Generation)
			back(row)
		}
		row.AvailableAt = l.s.now
	})
	return l
}

func back(row *history.Row) {
	row.Status = "pending"
	if row.Attempts >= row.MaxAttempts {
		row.Status = "dead_letter"
	}
}

// leave moves the row to the archive, which shows neither a status nor a claim.
func (l *life) leave() []history.Change {
	old := l.row
	free(&l.row)
	l.row.Status, l.row.Place = "", history.Archive
	row := l.row
	return []history.Change{
		{What: history.Delete, Table: history.Inbox, Old: &old},
		{What: history.Insert, Table: history.Archive, New: &row},
	}
}

func (l *life) tellSettle(verdict, outcome string) *history.Op {
	op := l.told(history.OpSettle, outcome)
	op.Verdict = verdict
	if outcome == history.OK {
		op.Status = l.row.Status
		if l.row.Place == history.Archive {
			op.Status = "completed"
		}
	}
	return op
}

func (l *life) settle(verdict string) *life {
	l.end(verdict)
	l.tellSettle(verdict, history.OK)
	return l
}

// reclaim waits for the lease to end.
func (l *life) reclaim() *life {
	if l.s.now.Before(l.row.LeaseExpiresAt) {
		l.s.now = l.row.LeaseExpiresAt
	}
	return l.seize()
}

// seize reclaims at once.
func (l *life) seize() *life {
	l.update(func(row *history.Row) {
		if back(row); row.Status == "dead_letter" {
			row.LastError = "the lease of worker " + row.ClaimedBy + " ended at the last attempt"
		}
		free(row)
		row.AvailableAt = l.s.now
	})
	return l
}

func (l *life) redrive() *life {
	l.update(func(row *history.Row) { row.Status, row.Attempts, row.AvailableAt = "pending", 0, l.s.now })
	l.s.tell(history.Op{Op: history.OpRedrive, Outcome: history.OK, Job: l.row.ID})
	return l
}

// finish is the rest of a plain life.
func (l *life) finish(worker string) *life {
	return l.claim(worker).execute("complete").settle("complete")
}

func (l *life) effect(outcome string) *life {
	l.told(history.OpEffect, outcome).Resource = l.row.ID
	l.s.effects = append(l.s.effects, history.Effect{Resource: l.row.ID, Token: l.token, Job: l.row.ID, WorkerID: l.worker, Accepted: outcome == history.OK})
	return l
}

func (s *story) drain(worker string, began time.Time) {
	s.pass(time.Second)
	s.tell(history.Op{Op: history.OpDrain, Outcome: history.OK, WorkerID: worker}).Begin = began
}

// write makes the folder of the run.
func (s *story) write() (dir string) {
	s.t.Helper()
	dir = s.t.TempDir()
	files := map[string][]any{history.WALFile: nil, history.SinkFile: nil, history.FaultsFile: nil, history.FinalFile: nil}
	put := func(name string, record any) { files[name] = append(files[name], record) }
	for _, op := range s.ops {
		put(history.ClientFile(op.Process), op)
	}
	for _, change := range s.changes {
		put(history.WALFile, change)
	}
	for _, effect := range s.effects {
		put(history.SinkFile, effect)
	}
	for _, fault := range s.faults {
		put(history.FaultsFile, fault)
	}
	for _, life := range s.lives {
		put(history.FinalFile, life.row)
	}
	for _, row := range s.final {
		put(history.FinalFile, row)
	}
	for name, records := range files {
		s.writeFile(dir, name, records)
	}
	if err := history.Finish(dir, s.run); err != nil {
		s.t.Fatal(err)
	}
	return dir
}

func (s *story) writeFile(dir, name string, records []any) {
	s.t.Helper()
	file, err := history.Create(dir, name)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, record := range records {
		if err := file.Write(record); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *story) judge() Report {
	s.t.Helper()
	report, err := Run(s.t.Context(), s.write())
	if err != nil {
		s.t.Fatal(err)
	}
	return report
}
