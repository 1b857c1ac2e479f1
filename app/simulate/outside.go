package simulate

import "sync"

// outside is what handlers change outside their jobs, as a database of the shop's own would
// keep it: what is written stays, and what is written over is gone.
type outside struct {
	mutex     sync.Mutex
	receipts  map[string]int // How many were sent, by order.
	charged   map[string]bool
	addresses map[string]string // Where an order goes.
	labels    map[string]label  // What is printed on its parcel.
}

// label is what a handler has written, and under which token.
type label struct {
	address string
	token   int64
}

func newOutside() *outside {
	return &outside{receipts: map[string]int{}, charged: map[string]bool{}, addresses: map[string]string{}, labels: map[string]label{}}
}

// send sends a receipt, and tells how many the order has got.
func (o *outside) send(order string) int {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.receipts[order]++
	return o.receipts[order]
}

func (o *outside) charge(order string) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.charged[order] = true
}

func (o *outside) isCharged(order string) bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.charged[order]
}

func (o *outside) move(order, address string) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.addresses[order] = address
}

func (o *outside) address(order string) string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.addresses[order]
}

// write writes a label over the one before, which it returns.
func (o *outside) write(order string, printed label) (before label) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	before = o.labels[order]
	o.labels[order] = printed
	return before
}

func (o *outside) label(order string) label {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.labels[order]
}
