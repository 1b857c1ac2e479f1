package simulate

import (
	"fmt"
	"time"

	"github.com/holdfast-pg/holdfast/app/orders"
	"github.com/holdfast-pg/holdfast/domain/model"
	"github.com/holdfast-pg/holdfast/worker"
)

// crashOrders are how many orders get a receipt.
const crashOrders = 4

// crash shows a worker that is killed between the effect and the completion of a job.
func crash() Preset {
	return Preset{
		Name:  "crash",
		About: "a worker is killed after it sent a receipt and before it completed the job",
		scenes: []scene{
			{"without the mark", func(s *stage) { crashSet(s, false, orders.Sent) }, crashSum},
			{"with the mark", func(s *stage) { crashSet(s, true, orders.Sent) }, crashSum},
		},
		lesson: func(scenes []Scene) string {
			without, with := scenes[0].Counts, scenes[1].Counts
			return fmt.Sprintf("The lease brings the job of a dead worker back, so its handler runs again: %s sent twice without a mark in the effect's own transaction, and %d with it.",
				plural(without.Repeated, "receipt was", "receipts were"), with.Repeated)
		},
	}
}

// crashSet lets the worker die that is the first to send the receipt of an order.
func crashSet(s *stage, marked bool, fatal int64) {
	s.show(EventJoined, EventStarted, EventDid, EventKilled, EventReclaimed, EventRepeated, EventSkipped, EventSettled)
	s.handle(orders.SendReceipt{}.Kind(), func(r *run) error {
		r.work(r.between(100*time.Millisecond, 300*time.Millisecond))
		r.transact()
		order := r.job.PartitionKey
		if marked && !r.markHandled() {
			r.tell(EventSkipped, "finds the mark: %s has its receipt", order)
			return nil
		}
		if sent := s.outside.send(order); sent > 1 {
			r.tell(EventRepeated, "sends receipt number %d of %s", sent, order)
		} else {
			r.tell(EventDid, "sends the receipt of %s", order)
		}
		if order == orders.Key(fatal) && r.job.Attempt == 1 {
			return r.crash()
		}
		return nil
	})
	s.start("w1", ordinary(2, worker.AffinityRing))
	s.start("w2", ordinary(2, worker.AffinityRing))
	for i := range int64(crashOrders) {
		s.after(10*time.Second+s.between("order", i, 0, time.Second), func() {
			s.request(model.NewJob{Kind: orders.SendReceipt{}.Kind(), Key: orders.Key(orders.Sent - 1 + i)})
		})
	}
}

func crashSum(s *stage) []string {
	order := orders.Key(orders.Sent)
	return []string{fmt.Sprintf("%s has got %s", order, plural(s.outside.receipts[order], "receipt", "receipts"))}
}
