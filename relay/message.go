package relay

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// Message is a job on its way out, or what arrived of one.
type Message struct {
	ID      string            // The job's id, the same at every attempt: receivers know duplicates by it.
	Source  string            // Who sends: the source of the CloudEvent.
	Queue   string            // The queue that it was in; "" of what did not say.
	Kind    string            // The job's kind: the type of the CloudEvent.
	Key     string            // The partition key: messages of a key have an order.
	Seq     int64             // Enqueue order within the source; 0 of what did not say.
	Created time.Time         // When the job was enqueued.
	Headers map[string]string // The job's, such as traceparent.
	Payload json.RawMessage   // The job's.
}

// Publisher hands messages over. A Relay calls it with one batch at a time.
type Publisher interface {
	// Publish hands a batch over and returns one result for each message, in their order. It
	// returns when each is answered or the context ends, which is the time of a batch. On an
	// ordered queue no two messages of a batch have one key; on others their order is free.
	Publish(ctx context.Context, batch []Message) []error

	// Ready returns nil when messages may be published again after one was put off, or when
	// that cannot be known without publishing one.
	Ready(ctx context.Context) error

	// Close frees what the publisher holds. Nothing is published after it.
	Close() error
}

// newMessage makes the message of a job.
func newMessage(source string, job domain.ClaimedJob) Message {
	return Message{
		ID:      job.ID.String(),
		Source:  source,
		Queue:   job.Queue,
		Kind:    job.Kind,
		Key:     job.PartitionKey,
		Seq:     job.Seq,
		Created: job.CreatedAt,
		Headers: readHeaders(job.Headers),
		Payload: job.Payload,
	}
}

// readHeaders reads a job's headers. A value that is no text stays as its JSON; what is no
// object holds none.
func readHeaders(encoded json.RawMessage) map[string]string {
	var values map[string]json.RawMessage
	if json.Unmarshal(encoded, &values) != nil || len(values) == 0 {
		return nil
	}
	headers := make(map[string]string, len(values))
	for name, value := range values {
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		headers[name] = text
	}
	return headers
}
