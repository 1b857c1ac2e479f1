// Package inbox publishes to the inbox of another Holdfast database, or to another queue of the
// same one. A message becomes a job under its id as idempotency key, so that one that is sent
// twice is one job there, as long as the dedupe window of that queue lasts.
package inbox

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/relay"
)

// Publisher enqueues messages in a database.
type Publisher struct {
	pool  *pgxpool.Pool
	queue string
}

// New returns a publisher to a queue of the pool's database; "" stands for the queue that each
// message was in. Close closes the pool.
func New(pool *pgxpool.Pool, queue string) *Publisher {
	return &Publisher{pool: pool, queue: queue}
}

// Publish enqueues a batch in one statement. If the database refuses what a message says, the
// halves are sent again, so that it alone is refused.
func (p *Publisher) Publish(ctx context.Context, batch []relay.Message) []error {
	results, err := relay.Ingest(ctx, p.pool, p.queue, batch)
	switch {
	case err == nil, len(results) == len(batch): // Only the states of duplicates are not known.
		return make([]error, len(batch))
	case !isAboutMessage(err):
		return relay.All(batch, relay.NotNow(0, err))
	case len(batch) == 1:
		return []error{relay.Refused(err)}
	}
	half := len(batch) / 2
	return append(p.Publish(ctx, batch[:half]), p.Publish(ctx, batch[half:])...)
}

// isAboutMessage tells whether the database refuses what a message says, and will again.
func isAboutMessage(err error) bool {
	var invalid *domain.InvalidError
	var refused *pgconn.PgError
	return errors.As(err, &invalid) ||
		errors.As(err, &refused) && slices.ContainsFunc([]string{"22", "23", "P0"}, func(class string) bool { return strings.HasPrefix(refused.Code, class) })
}

// Ready returns nil when the database answers and has the schema.
func (p *Publisher) Ready(ctx context.Context) error {
	_, err := domain.FindQueue(ctx, p.pool, domain.DefaultQueue)
	return err
}

// Close closes the pool.
func (p *Publisher) Close() error {
	p.pool.Close()
	return nil
}
