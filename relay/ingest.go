package relay

import (
	"context"
	"maps"

	"github.com/holdfast-pg/holdfast/domain"
)

// Headers that an ingested job has beside those of the message.
const (
	HeaderSource   = "ce-source"   // Who sent it.
	HeaderSequence = "ce-sequence" // Its place in the outbox that it came from, 19 digits.
	HeaderTime     = "ce-time"     // When it was enqueued there.
)

// Ingest enqueues what arrived as jobs, in one statement and in the caller's transaction, under
// the ids of the messages as idempotency keys: a message that arrives twice is one job, as long
// as the dedupe window of the queue lasts (7 days by default). The kind, the partition key, the
// headers and the payload are those of the message. queue "" stands for the queue that the
// message names. Acknowledge to the broker when the transaction has committed, not before.
// Options are added to every job's. Errors: as domain.EnqueueMany; an InvalidError is about one
// of the messages and will not go away.
func Ingest(ctx context.Context, db domain.DBTX, queue string, messages []Message, options ...domain.EnqueueOption) ([]domain.EnqueueResult, error) {
	jobs := make([]domain.NewJob, len(messages))
	for i, message := range messages {
		jobs[i] = message.job(queue, options)
	}
	return domain.EnqueueMany(ctx, db, jobs...)
}

// job is the job that a message becomes.
func (m Message) job(queue string, options []domain.EnqueueOption) domain.NewJob {
	if queue == "" {
		queue = m.Queue
	}
	if queue == "" {
		queue = domain.DefaultQueue
	}
	headers := maps.Clone(m.Headers)
	if headers == nil {
		headers = map[string]string{}
	}
	for _, attribute := range m.Attributes() {
		switch attribute.Name {
		case "source", "sequence", "time":
			headers["ce-"+attribute.Name] = attribute.Value
		}
	}
	// The caller's options come last, and so they count.
	all := []domain.EnqueueOption{domain.OnQueue(queue), domain.Once(m.ID), domain.Headers(headers)}
	if m.Key != "" {
		all = append(all, domain.Key(m.Key))
	}
	return domain.NewJob{Args: domain.RawArgs{JobKind: m.Kind, Payload: m.Payload}, Options: append(all, options...)}
}
