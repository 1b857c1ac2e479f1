// Package relay publishes the jobs of a queue, which thereby is an outbox: a job is enqueued in
// the transaction that it tells of, and a relay hands it to a broker, to a service, or to the
// inbox of another database.
//
// A relay is a worker. Claims, leases, fences, dead letters and order are a worker's, and its one
// handler gathers what its slots hold into batches for a Publisher. Publishers are packages of
// their own, so that a program links the client of one broker only: relay/nats, relay/kafka,
// relay/http, relay/inbox. Ingest is the other end: it turns what arrived into a job, once.
//
// What each leg promises stands in docs/outbox.md.
package relay
