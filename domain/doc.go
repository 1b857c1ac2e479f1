// Package domain holds the rules of durable work: which claim may write, what zero rows
// mean, when a job is tried again.
//
// Every statement of queries/*.sql is wrapped here once, and no other package of this module
// reaches a statement, so nothing writes without passing the fence. The files follow the
// life of a job and carry the names of its SQL files: enqueue, claim, handled, fence, renew,
// complete, retry, drain, reclaim, archive, workers, support, operate.
//
// What a caller wants inside a transaction of their own (Enqueue, MarkHandled, Guard) takes
// that transaction as its second argument. What the worker's loop needs is a method of
// Queue, which has connections of its own. Package domain/model implements the same rules in
// memory.
//
// HandleTx joins both: it runs a handler and completes its job in one transaction, which the
// worker's loop never sees.
//
// The package starts no goroutine but the one that takes an open HandleTx's connection away
// when its context ends, keeps no timer and writes no log. Only the database tells the time.
package domain
