package support

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/relay"
	"github.com/holdfast-pg/holdfast/worker"
)

// RelayStatus is how one outbox is published to one destination, by all relays that do so. What
// relays say of themselves is as old as their heartbeats, and counted since each started.
type RelayStatus struct {
	Queue       string `json:"queue"`
	Destination string `json:"destination"`
	Relays      int    `json:"relays"` // Those that are alive. 0: the last one has died or was stopped, within the last day.
	Away        int    `json:"away"`   // Of these, whose destination takes nothing.

	LagSeconds *float64     `json:"lag_seconds"` // How long the oldest due message of the queue has been due; null when none is.
	Waiting    domain.Count `json:"waiting"`     // Due messages of the queue.
	InFlight   domain.Count `json:"in_flight"`   // Claimed ones.
	Dead       domain.Count `json:"dead"`        // Refused, or out of attempts.

	Published   int64      `json:"published"`
	Refused     int64      `json:"refused"`
	PutOff      int64      `json:"put_off"`
	Failed      int64      `json:"failed"`
	LastError   string     `json:"last_error"`
	LastErrorAt *time.Time `json:"last_error_at"` // By the relay's clock.
	SaidSeconds float64    `json:"said_seconds"`  // How old the oldest of what relays say is; without any, how long ago the last one spoke.
}

// Relays tells how the relays of the last day are doing, by queue and destination.
func Relays(ctx context.Context, db domain.DBTX, most int) ([]RelayStatus, error) {
	workers, err := domain.ListWorkers(ctx, db, true, most)
	if err != nil {
		return nil, err
	}
	statuses := []RelayStatus{}
	for _, each := range workers {
		said, isRelay := relay.ReadStatus(worker.ReadFacts(each.Metadata).More)
		if !isRelay || len(each.Queues) == 0 {
			continue
		}
		at := slices.IndexFunc(statuses, func(s RelayStatus) bool { return s.Queue == each.Queues[0] && s.Destination == said.Destination })
		if at < 0 {
			at = len(statuses)
			statuses = append(statuses, RelayStatus{Queue: each.Queues[0], Destination: said.Destination})
		}
		if each.Status == domain.WorkerDead {
			statuses[at].remember(said, each.Silence)
		} else {
			statuses[at].add(said, each.Silence)
		}
	}
	slices.SortFunc(statuses, func(a, b RelayStatus) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Destination, b.Destination))
	})
	return statuses, addLoads(ctx, db, statuses)
}

func (s *RelayStatus) add(said relay.Status, silence time.Duration) {
	s.Relays++
	if said.Away {
		s.Away++
	}
	s.Published += said.Published
	s.Refused += said.Refused
	s.PutOff += said.PutOff
	s.Failed += said.Failed
	s.SaidSeconds = max(s.SaidSeconds, silence.Seconds())
	s.addError(said)
}

// remember keeps the last words of a relay that is gone, where none is alive: those are listed before.
func (s *RelayStatus) remember(said relay.Status, silence time.Duration) {
	if s.Relays > 0 {
		return
	}
	if s.SaidSeconds == 0 || silence.Seconds() < s.SaidSeconds {
		s.SaidSeconds = silence.Seconds()
	}
	s.addError(said)
}

func (s *RelayStatus) addError(said relay.Status) {
	if said.LastErrorAt != nil && (s.LastErrorAt == nil || s.LastErrorAt.Before(*said.LastErrorAt)) {
		s.LastError, s.LastErrorAt = said.LastError, said.LastErrorAt
	}
}

// addLoads adds what waits in the queues of the relays.
func addLoads(ctx context.Context, db domain.DBTX, statuses []RelayStatus) error {
	var queues []string
	for _, status := range statuses {
		queues = append(queues, status.Queue)
	}
	queues = slices.Compact(queues) // They are sorted.
	if len(queues) == 0 {
		return nil
	}
	loads, err := domain.QueueLoads(ctx, db, queues...)
	if err != nil {
		return err
	}
	for i := range statuses {
		for _, load := range loads {
			if load.Queue == statuses[i].Queue {
				statuses[i].LagSeconds, statuses[i].Waiting = load.OldestAgeSeconds, load.Ready
				statuses[i].InFlight, statuses[i].Dead = load.Processing, load.Dead()
			}
		}
	}
	return nil
}
