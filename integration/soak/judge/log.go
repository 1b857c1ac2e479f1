package judge

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

// transaction is one of the log's, whole.
type transaction struct {
	xid     uint32
	lsn     uint64
	commit  int64
	changes []change

	// What its changes are, filled while they are applied.
	marks    map[uint32]bool
	placed   []placed
	inserted []uint32
	booked   map[int64]uint32 // Job by generation.
	done     map[int64]uint32 // The same of its completed bookings.
}

// placed is a row that a producer wrote beside a job.
type placed struct{ job, marker uint32 }

type change struct {
	history.Change
	line uint32
}

// readLog plays what Postgres committed, transaction by transaction.
func (j *judge) readLog(ctx context.Context) error {
	tx := newTransaction()
	err := records(ctx, j, history.WALFile, func(record *history.Change, line uint32) error {
		lsn, err := history.ParseLSN(record.LSN)
		if err != nil {
			return err
		}
		if record.Commit.IsZero() {
			return errors.New("the change has no time")
		}
		j.counts.Changes++
		if len(tx.changes) > 0 && (record.XID != tx.xid || lsn != tx.lsn) {
			if lsn <= tx.lsn {
				return fmt.Errorf("%w: the commit at %s is out of order", history.ErrCutShort, record.LSN)
			}
			if err := j.play(tx); err != nil {
				return err
			}
			tx.clear()
		}
		tx.xid, tx.lsn, tx.commit = record.XID, lsn, nanos(record.Commit)
		tx.changes = append(tx.changes, change{*record, line})
		return nil
	})
	if err != nil {
		return err
	}
	if len(tx.changes) > 0 {
		if err := j.play(tx); err != nil {
			return err
		}
	}
	j.checkDrains(0)
	return nil
}

func newTransaction() *transaction {
	return &transaction{marks: map[uint32]bool{}, booked: map[int64]uint32{}, done: map[int64]uint32{}}
}

func (t *transaction) clear() {
	t.changes, t.inserted, t.placed = t.changes[:0], t.inserted[:0], t.placed[:0]
	clear(t.marks)
	clear(t.booked)
	clear(t.done)
}

// play applies the changes of a transaction and has each of them checked.
func (j *judge) play(tx *transaction) error {
	j.checkDrains(tx.commit)
	arrivals := tx.arrivals()
	for i := range tx.changes {
		change := &tx.changes[i]
		if err := j.apply(tx, change, arrivals); err != nil {
			return fmt.Errorf("line %d: %w", change.line, err)
		}
	}
	for id, arrived := range arrivals {
		if err := j.applyMove(tx, arrived, nil, arrived.New); err != nil {
			return fmt.Errorf("job %s: %w", id, err)
		}
	}
	for _, rule := range j.rules {
		if rule.end != nil && rule.end(j, tx) {
			j.checked[rule.promise]++
		}
	}
	j.recovered.last = max(j.recovered.last, tx.commit)
	return nil
}

// arrivals are the rows that a transaction puts into the archive: each is to have been taken
// from where it was, by the same transaction.
func (t *transaction) arrivals() map[string]*change {
	var arrivals map[string]*change
	for i := range t.changes {
		c := &t.changes[i]
		if c.Table == history.Archive && c.What == history.Insert && c.New != nil {
			if arrivals == nil {
				arrivals = map[string]*change{}
			}
			arrivals[c.New.ID] = c
		}
	}
	return arrivals
}

func (j *judge) apply(tx *transaction, c *change, arrivals map[string]*change) error {
	switch c.What {
	case history.Mark:
		number := j.markerOf(c.Marker)
		tx.marks[number] = true
		j.seen[number] = true
		return nil
	case history.Insert, history.Update, history.Delete:
	default:
		return fmt.Errorf("%.60q is no change", c.What)
	}
	if c.What != history.Insert && c.Table != history.Placed && c.Table != history.Ledger && c.Old == nil || c.What != history.Delete && c.New == nil {
		return fmt.Errorf("the %s has no row", c.What)
	}
	switch c.Table {
	case history.Placed, history.Ledger:
		return j.applyBeside(tx, c)
	case history.Archive:
		if c.What == history.Insert {
			return nil // It is applied with the row that it was.
		}
	case history.Inbox:
		if c.What == history.Insert {
			return j.applyMove(tx, c, nil, c.New)
		}
	default:
		return fmt.Errorf("%.60q is no table of the soak", c.Table)
	}
	if c.What == history.Update {
		return j.applyMove(tx, c, c.Old, c.New)
	}
	if arrived := arrivals[c.Old.ID]; arrived != nil {
		delete(arrivals, c.Old.ID)
		return j.applyMove(tx, c, c.Old, arrived.New)
	}
	return j.applyMove(tx, c, c.Old, nil)
}

// applyBeside takes down a row that producers and handlers write beside a job.
func (j *judge) applyBeside(tx *transaction, c *change) error {
	if c.What != history.Insert {
		return fmt.Errorf("nobody is to %s rows of %s", c.What, c.Table)
	}
	job, err := j.jobOf(c.New.ID)
	if err != nil {
		return err
	}
	if c.Table == history.Placed {
		row := placed{job.number, j.markerOf(c.Marker)}
		tx.placed = append(tx.placed, row)
		if job.marker == 0 {
			job.marker = row.marker // Of the first that placed it: that one made it.
		}
		return nil
	}
	tx.booked[c.New.Generation] = job.number
	return nil
}
