package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// The versions of PostgreSQL that the tests run on.
const (
	oldestServer = 14
	newestServer = 18
)

var serverVersion = check{
	id:       "server_version",
	examines: "that the server is PostgreSQL 14 to 18",
	why:      "Statements and plans are tested on these versions only.",
	severity: Error,
	find: func(_ context.Context, p *patient) ([]symptom, error) {
		major := p.server.Version / 10_000
		if major >= oldestServer && major <= newestServer {
			return nil, nil
		}
		return []symptom{{
			what: "the server is PostgreSQL " + p.server.VersionText,
			fix:  fmt.Sprintf("use PostgreSQL %d to %d", oldestServer, newestServer),
		}}, nil
	},
}

var writable = check{
	id:       "writable",
	examines: "that the server is a primary, and the role may write",
	why:      "Jobs are enqueued, claimed and settled on the primary only, by sessions that may write.",
	severity: Error,
	find: func(_ context.Context, p *patient) ([]symptom, error) {
		if p.server.Standby {
			return []symptom{{
				what: "the server is a standby",
				fix:  "name the primary in --database-url; with several hosts add target_session_attrs=read-write",
			}}, nil
		}
		if p.setting("default_transaction_read_only") != "on" {
			return nil, nil
		}
		return []symptom{{
			what: fmt.Sprintf("default_transaction_read_only is on (%s)", p.source("default_transaction_read_only")),
			fix:  p.forRole("default_transaction_read_only", "off"),
		}}, nil
	},
}

var notifications = check{
	id:       "notifications",
	examines: "that a notification arrives, so that no pooler in transaction mode stands before LISTEN",
	why:      "A pooler in transaction mode gives each transaction another session, and LISTEN belongs to a session. Jobs are found by polling all the same, up to 2 s later.",
	severity: Warning,
	schema:   true,
	find: func(ctx context.Context, p *patient) ([]symptom, error) {
		queue, err := domain.NewQueue(p.pool, domain.ListenOn(p.options.DirectURL))
		if err != nil {
			return nil, err
		}
		defer queue.Close()
		hears, err := domain.Hears(ctx, queue)
		if err != nil || hears {
			return nil, err
		}
		what := "a notification does not arrive"
		if p.pooled {
			what = "a notification does not arrive, and a pooler stands before the server: the process that answers is not the one that was connected to"
		}
		return []symptom{{what: what, fix: "holdfast work --direct-url URL, where URL leads past the pooler; `holdfast doctor --direct-url URL` tries it"}}, nil
	},
}

var connections = check{
	id:       "connections",
	examines: "that the server has connections left for as many workers again",
	why:      "A worker without a connection renews no lease and settles no result. A deploy starts new workers before the old ones end.",
	severity: Warning,
	find: func(_ context.Context, p *patient) ([]symptom, error) {
		usable := int(p.server.MaxConnections - p.server.ReservedConnections)
		left := usable - int(p.server.UsedConnections)
		need := 0
		for _, worker := range p.workers {
			need += worker.Connections + 1
		}
		switch {
		case left*10 < usable:
			return []symptom{{
				what: fmt.Sprintf("%d of %d connections are used", p.server.UsedConnections, usable),
				fix:  raiseConnections(p.server.MaxConnections),
			}}, nil
		case !p.pooled && left < need:
			return []symptom{{
				what: fmt.Sprintf("%d of %d connections are used, and %d live workers open up to %d: as many again do not fit", p.server.UsedConnections, usable, len(p.workers), need),
				fix:  raiseConnections(p.server.MaxConnections),
			}}, nil
		}
		return nil, nil
	},
}

// mostSkew is how far apart the clocks may be.
const mostSkew = time.Second

var clockSkew = check{
	id:       "clock_skew",
	examines: "that this machine's clock and the server's differ by no more than a second",
	why:      "The database's clock decides when a job is due and when a lease ends. What a producer computes with another clock, such as a time to run at, is off by the difference, and so are the times in logs.",
	severity: Warning,
	find: func(_ context.Context, p *patient) ([]symptom, error) {
		skew := p.server.Clock.Sub(p.sent.Add(p.took / 2))
		if skew.Abs() <= mostSkew+p.took/2 {
			return nil, nil
		}
		direction := "ahead of"
		if skew < 0 {
			direction = "behind"
		}
		return []symptom{{
			what: fmt.Sprintf("the server's clock is %s %s this machine's", skew.Abs().Round(time.Millisecond), direction),
			fix:  "timedatectl set-ntp true, or chronyc makestep, on the machine whose clock is wrong",
		}}, nil
	},
}
