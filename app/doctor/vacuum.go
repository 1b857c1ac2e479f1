package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

var vacuumHorizon = check{
	id:       "vacuum_horizon",
	examines: "that no old transaction, prepared transaction, replication slot or standby holds vacuum back",
	why:      "Dead rows younger than the oldest snapshot stay, in the table and in its indexes. Every claimed, renewed and settled job leaves some, and whoever looks steps over them.",
	severity: Warning,
	find: func(ctx context.Context, p *patient) ([]symptom, error) {
		holders, err := domain.HorizonHolders(ctx, p.pool, p.options.HeldFor, p.options.Transactions, 2*mostSymptoms)
		if err != nil {
			return nil, err
		}
		found := make([]symptom, len(holders))
		for i, holder := range holders {
			found[i] = held(holder)
		}
		return found, nil
	},
}

func held(holder domain.HorizonHolder) symptom {
	age := holder.Age.Round(time.Second)
	switch holder.Kind {
	case "session":
		state := holder.State
		if state == "active" {
			state = "running a statement"
		}
		return symptom{
			what: fmt.Sprintf("session %s of role %s is %s, in a transaction that is %s old", holder.Name, holder.RoleName, state, age),
			fix:  endSession(holder.Name),
		}
	case "prepared":
		return symptom{
			what: fmt.Sprintf("prepared transaction %s of role %s has waited for its end for %s", literal(holder.Name), holder.RoleName, age),
			fix:  endPrepared(holder.Name),
		}
	case "slot":
		what := fmt.Sprintf("replication slot %s is %s and holds on to what is %d transactions old", literal(holder.Name), holder.State, holder.Transactions)
		fix := dropSlot(holder.Name)
		if holder.State == "active" {
			fix = "let who reads slot " + literal(holder.Name) + " catch up, or end the old transaction on it"
		}
		return symptom{what: what, fix: fix}
	default:
		return symptom{
			what: fmt.Sprintf("standby %s holds on, by hot_standby_feedback, to what is %d transactions old", holder.Name, holder.Transactions),
			fix:  endOnStandby,
		}
	}
}

var autovacuum = check{
	id:       "autovacuum",
	examines: "that autovacuum is on, for the server and for the inbox",
	why:      "Each job leaves dead rows. Without vacuum the inbox only grows, and its statistics are of another day.",
	severity: Error,
	schema:   true,
	find: func(ctx context.Context, p *patient) ([]symptom, error) {
		condition, err := domain.ReadInboxCondition(ctx, p.pool)
		if err != nil {
			return nil, err
		}
		var found []symptom
		for _, name := range []string{"autovacuum", "track_counts"} {
			if p.setting(name) == "off" {
				found = append(found, symptom{
					what: fmt.Sprintf("%s is off (%s)", name, p.source(name)),
					fix:  switchOn(name),
				})
			}
		}
		if condition.AutovacuumDisabled {
			found = append(found, symptom{
				what: "autovacuum is off for table inbox",
				fix:  allowAutovacuum,
			})
		}
		return found, nil
	},
}

// vacuumDue is how long ago the latest vacuum may be where many rows are dead.
const vacuumDue = 10 * time.Minute

var deadRows = check{
	id:       "dead_rows",
	examines: "that vacuum keeps up with the dead rows of the inbox",
	why:      "Dead rows are read and stepped over until vacuum removes them. Autovacuum comes for so many within minutes, unless it is held back, too slow or out of workers.",
	severity: Warning,
	schema:   true,
	find: func(ctx context.Context, p *patient) ([]symptom, error) {
		condition, err := domain.ReadInboxCondition(ctx, p.pool)
		if err != nil {
			return nil, err
		}
		recent := condition.SinceVacuum >= 0 && condition.SinceVacuum < vacuumDue
		all := condition.LiveRows + condition.DeadRows
		if condition.DeadRows < p.options.DeadRows || condition.DeadRows*5 < all || recent {
			return nil, nil
		}
		last := "it was never vacuumed"
		if condition.SinceVacuum >= 0 {
			last = "the latest vacuum was " + condition.SinceVacuum.Round(time.Second).String() + " ago"
		}
		return []symptom{{
			what: fmt.Sprintf("%d of %d rows of table inbox are dead (%d %%), and %s", condition.DeadRows, all, condition.DeadRows*100/all, last),
			fix:  vacuumInbox,
		}}, nil
	},
}

// What a row takes beside its columns, and how much of a page the fillfactor lets it have.
const (
	rowOverhead = 28
	fillPercent = 85
	bloatTimes  = 4 // So many times the size that its rows need.
)

var bloat = check{
	id:       "bloat",
	examines: "that the inbox is not many times larger than its rows need (an estimate)",
	why:      "Empty pages stay in the file after a backlog has drained. They cost cache, backups, and every vacuum and ANALYZE that passes by them.",
	severity: Warning,
	schema:   true,
	find: func(ctx context.Context, p *patient) ([]symptom, error) {
		condition, err := domain.ReadInboxCondition(ctx, p.pool)
		if err != nil {
			return nil, err
		}
		needed := condition.LiveRows * (condition.RowBytes + rowOverhead) * 100 / fillPercent
		if condition.Bytes <= p.options.Bloat || condition.Bytes <= bloatTimes*needed {
			return nil, nil
		}
		return []symptom{{
			what: fmt.Sprintf("table inbox has %d MB, of which its %d rows need some %d MB", condition.Bytes>>20, condition.LiveRows, needed>>20),
			fix:  shrinkInbox,
		}}, nil
	},
}
