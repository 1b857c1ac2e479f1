// Package model is the rules of package domain in memory, with a clock that is moved by
// hand. It is the specification of the statements in queries/*.sql, the engine of the
// simulator, and the oracle that integration tests compare Postgres with.
//
// Queue implements worker.Queue, and beside it what producers, handlers and operators do:
// enqueue, handle in a transaction, mark, guard, look up, redrive, set and pause queues. It
// answers with the types of package domain. The same history played on it and on an empty
// database gives the same answers, as far as the database fixes them. To compare them byte by
// byte, give every job the id that Postgres drew (NewJob.ID), and both sides the same backoff
// (Settings.Backoff); Tables shows what is kept beside jobs.
//
// Left out are transactions and what follows from them: every operation happens at one
// instant and is seen by all at once, no row is locked, nothing rolls back, no reply gets
// lost. Arguments are taken as valid: what package domain refuses before it runs a
// statement, and what a CHECK of the schema refuses, is stored here. Payloads stay as they
// were given, where jsonb writes them its own way. Of more free lanes than a claim can take,
// all workers together take turns; in the database each on its own.
package model
