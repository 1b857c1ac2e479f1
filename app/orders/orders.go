// Package orders is the story that the demo and the simulations tell, the one on a database and
// in real processes, the others in virtual time: a shop sends receipts, and prints labels.
package orders

import "fmt"

const (
	// Sent is the order whose worker dies after its receipt was sent.
	Sent = 9182

	// Label is the order whose worker is paused while it prints the parcel's label.
	Label = 9500

	// OldAddress is what that worker has read.
	OldAddress = "1 Elm Street"

	// NewAddress is where the customer moves meanwhile.
	NewAddress = "2 Oak Avenue"
)

// SendReceipt is the payload of a receipt.
type SendReceipt struct {
	OrderID int64  `json:"order_id"`
	Email   string `json:"email"`
}

// Kind names the jobs that send receipts.
func (SendReceipt) Kind() string { return "send_receipt" }

// PrintLabel is the payload of a parcel's label.
type PrintLabel struct {
	OrderID int64 `json:"order_id"`
}

// Kind names the jobs that print labels.
func (PrintLabel) Kind() string { return "print_label" }

// Key is the partition key of an order's jobs.
func Key(order int64) string { return fmt.Sprintf("order:%d", order) }

// Brief leaves out of a token what all tokens of a run have in common, but for one run in a
// thousand.
func Brief(token int64) string { return fmt.Sprintf("…%06d", token%1e6) }
