package simulate

import (
	"fmt"
	"time"

	"github.com/holdfast-pg/holdfast/app/orders"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
	"github.com/holdfast-pg/holdfast/worker"
)

// twoWorkersOrders are how many orders the two share.
const twoWorkersOrders = 6

// twoWorkers shows what two workers of one queue do and do not promise each other: a job is one
// worker's, but the jobs of an order meet on both.
func twoWorkers() Preset {
	return Preset{
		Name:  "two-workers",
		About: "two workers without a ring share the jobs of six orders: charge the card, then send the receipt",
		scenes: []scene{
			{"a queue without order", func(s *stage) { twoWorkersSet(s, false) }, twoWorkersSum},
			{"an ordered queue", func(s *stage) { twoWorkersSet(s, true) }, twoWorkersSum},
		},
		lesson: func(scenes []Scene) string {
			free, ordered := scenes[0].Counts, scenes[1].Counts
			return fmt.Sprintf("Whoever wins a row works on it, so no job is done twice; but which comes first nobody says unless you ask: %s left before the card was charged, and %d from an ordered queue.",
				plural(free.OutOfOrder, "receipt", "receipts"), ordered.OutOfOrder)
		},
	}
}

func twoWorkersSet(s *stage, ordered bool) {
	s.show(EventJoined, EventStarted, EventEarly, EventRepeated)
	setOrdered(s, ordered)
	s.handle("charge_card", func(r *run) error {
		r.work(r.between(300*time.Millisecond, 600*time.Millisecond))
		r.transact()
		s.outside.charge(r.job.PartitionKey)
		return nil
	})
	s.handle(orders.SendReceipt{}.Kind(), func(r *run) error {
		r.work(r.between(50*time.Millisecond, 200*time.Millisecond))
		r.transact()
		order := r.job.PartitionKey
		if sent := s.outside.send(order); sent > 1 {
			r.tell(EventRepeated, "sends receipt number %d of %s", sent, order)
		} else if !s.outside.isCharged(order) {
			r.tell(EventEarly, "sends it: the card of %s is not charged yet", order)
		}
		return nil
	})
	s.start("w1", ordinary(1, worker.AffinityNone))
	s.start("w2", ordinary(1, worker.AffinityNone))
	for i := range int64(twoWorkersOrders) {
		order := orders.Key(orders.Sent - 2 + i)
		s.after(time.Second+time.Duration(i)*400*time.Millisecond+s.between("order", i, 0, 200*time.Millisecond), func() {
			s.request(model.NewJob{Kind: "charge_card", Key: order})
			s.request(model.NewJob{Kind: orders.SendReceipt{}.Kind(), Key: order})
		})
	}
}

func twoWorkersSum(s *stage) []string {
	sent := 0
	for i := range int64(twoWorkersOrders) {
		sent += s.outside.receipts[orders.Key(orders.Sent-2+i)]
	}
	return []string{fmt.Sprintf("%s sent for %s", plural(sent, "receipt", "receipts"), plural(twoWorkersOrders, "order", "orders"))}
}

// setOrdered makes the queue ordered, or not.
func setOrdered(s *stage, ordered bool) {
	if _, err := s.jobs.SetQueue(forGood, domain.DefaultQueue, domain.QueueChange{Ordered: &ordered}); err != nil {
		panic(fmt.Sprintf("simulate: %v", err)) // It has no job yet.
	}
}
