package simulate

import (
	"fmt"
	"time"

	"github.com/holdfast-pg/holdfast/app/orders"
	"github.com/holdfast-pg/holdfast/domain/model"
	"github.com/holdfast-pg/holdfast/worker"
)

// pauseFor is longer than a lease, a round of housekeeping and a backoff.
const pauseFor = 150 * time.Second

// pause shows a process that is paused for longer than its lease, and does not know when it wakes.
func pause() Preset {
	return Preset{
		Name:  "pause",
		About: "a worker is paused for longer than its lease while it prints a parcel's label",
		scenes: []scene{
			{"without the fence", func(s *stage) { pauseSet(s) }, pauseSum},
			{"with the fence", func(s *stage) { s.fence(); pauseSet(s) }, pauseSum},
		},
		lesson: func(scenes []Scene) string {
			without, with := scenes[0].Counts, scenes[1].Counts
			return fmt.Sprintf("A process that was paused does not know that its lease is over, and writes: %s without a fence, and %d with it, because the resource compares tokens and refused %s.",
				plural(without.LostUpdates, "newer label was lost", "newer labels were lost"), with.LostUpdates, plural(with.WritesRefused, "stale write", "stale writes"))
		},
	}
}

func pauseSet(s *stage) {
	s.show(EventOutside, EventJoined, EventStarted, EventPaused, EventWoken, EventReclaimed, EventLost, EventDid, EventLostUpdate, EventWriteRefused, EventSettled, EventResultRefused)
	order := orders.Key(orders.Label)
	s.outside.move(order, orders.OldAddress)
	s.handle(orders.PrintLabel{}.Kind(), func(r *run) error {
		r.transact()
		address := s.outside.address(order)
		if r.job.Attempt == 1 {
			r.pause(pauseFor)
		}
		r.work(r.between(100*time.Millisecond, 300*time.Millisecond))
		r.transact()
		printLabel(r, order, address)
		return nil
	})
	s.start("w1", ordinary(1, worker.AffinityRing))
	s.start("w2", ordinary(1, worker.AffinityRing))
	s.after(10*time.Second, func() { s.request(model.NewJob{Kind: orders.PrintLabel{}.Kind(), Key: order}) })
	s.after(30*time.Second+s.between("move", 0, 0, 10*time.Second), func() {
		s.outside.move(order, orders.NewAddress)
		s.note(nil, Event{Event: EventOutside, Text: fmt.Sprintf("the customer of %s moves to %s", order, orders.NewAddress)})
	})
}

// printLabel writes the label, unless the order has a fence and has seen a higher token.
func printLabel(r *run, order, address string) {
	if !r.admitted(order) {
		r.tell(EventWriteRefused, "is refused: %s has seen token %s", order, orders.Brief(r.stage.outside.label(order).token))
		return
	}
	before := r.stage.outside.write(order, label{address, r.job.Generation})
	if before.token > r.job.Generation {
		r.tell(EventLostUpdate, "prints %s over %s, of token %s", address, before.address, orders.Brief(before.token))
		return
	}
	r.tell(EventDid, "prints %s under token %s", address, orders.Brief(r.job.Generation))
}

func pauseSum(s *stage) []string {
	order := orders.Key(orders.Label)
	return []string{fmt.Sprintf("%s goes to %s, and its label says %s", order, s.outside.address(order), s.outside.label(order).address)}
}
