package domain

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-pg/holdfast/gen"
)

// Lag is how far a server is behind the one that is written to.
type Lag struct {
	Standby  bool          // It is a standby. Without that the rest says nothing.
	Replayed bool          // It shows all that has reached it; whether more was written elsewhere it cannot know.
	Known    bool          // Age is known.
	Age      time.Duration // How long ago the latest change that it shows was committed.
}

// ReadLag asks a server how far it is behind its primary.
func ReadLag(ctx context.Context, db DBTX) (Lag, error) {
	row, err := gen.New().ReadLag(ctx, db)
	if err != nil {
		return Lag{}, fmt.Errorf("read the lag of the replica: %w", explain(err))
	}
	return Lag(row), nil
}

// String says how old what the server tells is.
func (l Lag) String() string {
	switch age := fmt.Sprintf("%.1f s", l.Age.Seconds()); {
	case !l.Standby:
		return "a server that is no replica: it accepts writes"
	case l.Replayed && l.Known:
		return "a replica that shows all that has reached it; its latest change is " + age + " old"
	case l.Replayed:
		return "a replica that shows all that has reached it"
	case l.Known:
		return "a replica that is " + age + " behind"
	default:
		return "a replica that does not know how far it is behind: it has replayed nothing since it started"
	}
}
