// Package worker is the loop that turns claims into runs of handlers.
//
// A worker joins the registry and then does five things side by side. It claims due jobs, no
// more than it has free slots to start. It runs each job's handler in a goroutine of its own.
// It renews the leases of everything it holds. It settles results in batches: while one batch
// is on its way the next one gathers. It beats, and keeps house. When its context ends, or an
// operator drains it, it stops claiming, waits for the handlers, settles, gives back what is
// left and leaves the registry.
//
// The loop knows nothing of Postgres: it talks to a Queue. Its clock and its randomness are
// part of its Config. It decides nothing about who may write; the Queue's fences do.
package worker
