// Package embedding shows how a service enqueues in its own transaction, whatever it reaches its
// database with. It is a module of its own, so that nobody inherits what it needs.
// docs/embedding.md quotes it.
package embedding

// SendReceipt is a job.
type SendReceipt struct {
	Order int64 `json:"order"`
}

// Kind names the handler.
func (SendReceipt) Kind() string { return "send_receipt" }

const insertOrder = "INSERT INTO orders (id) VALUES ($1)"
