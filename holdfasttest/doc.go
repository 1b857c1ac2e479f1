// Package holdfasttest helps to test services that use Holdfast: what they enqueue, and what
// their handlers do when they run once, twice, or too late.
//
// # A database
//
// NewPool gives a test a migrated database of its own. There is nothing to set up: a private
// Postgres starts with the first test and ends with the process.
//
//	func TestReceipts(t *testing.T) {
//		t.Parallel()
//		pool := holdfasttest.NewPool(t)
//
// Tests that have a database need none of that: every function takes the transaction or pool
// of the test, and Migrate makes the schema.
//
// # An enqueue
//
// RequireEnqueued reads as the enqueue does, and prints what is there instead when it fails.
// RequireNotEnqueued is the opposite, Enqueued returns the jobs of a kind with their args.
//
//	holdfasttest.RequireEnqueued(t, tx, SendReceipt{Email: "ada@example.com"}, holdfast.Key("order:9182"))
//
// # A handler
//
// Run enqueues a job and runs its handler, in the test's transaction, without a worker. RunJob does so
// with a job that is there, RunTwice delivers one twice, and RunStale delivers it under a claim
// that another has overtaken. Each returns how the run ended.
//
//	outcome := holdfasttest.Run(t, t.Context(), tx, handler, SendReceipt{Email: "ada@example.com"})
//	if outcome.Ending != holdfasttest.Completed {
//		t.Error(outcome)
//	}
//
// # A worker
//
// Drain runs a real worker until nothing is due, DrainAll until nothing waits either. ExpireLease
// and MakeDue let time pass for one job.
//
// Every function fails the test when it cannot do what it is for, so none returns an error. The
// context of those that run handlers is the handlers'.
package holdfasttest
