// Package protocol is the protocol of claims as a step function over a small state, and an
// exploration of every order in which the steps can happen. It runs in tests only, and makes
// nothing: it is a specification that is checked.
//
// Package model, one folder up, does each operation at an instant. Here each statement is what
// Postgres makes of it under READ COMMITTED, for that is where claims go wrong: a snapshot that
// chooses rows, then for each row its lock, which is skipped or waited for, the conditions again
// on the row's newest version, the token, and the commit that others see. Between any two of
// these everybody else may take a step: two workers, each with a claim and a settlement on its
// way, housekeepers, producers, a person, time. A worker never forgets a claim, and may act on
// any that it was ever given: it may have been paused, or be confused. What each step stands for
// is in the table of kinds (words.go).
//
// Every step that becomes visible is judged by what is committed and what was promised
// (promise.go), and from every state some steps must lead to one in which all jobs are terminal.
// A broken promise is reported as a shortest way to it. That the judges see is shown with faults
// that are planted (Fault): each must break its promise.
//
// What it does not show: more than two jobs, workers or housekeepers; keys and marks (Once per key, Effects can be fenced); what the ring, wakes
// and floors do, since a claim may take any due job at any time; that a job is run soon, or at
// all when somebody may act for ever in its place. It trusts that rows are locked and rechecked
// as the manual says, and that a SQL statement says what its step says: the tests in
// integration/ hold those against a real Postgres. And it trusts that a worker leaves only when no
// claim of its own still runs on the server; LeaveBesideClaim shows what happens if one does.
package protocol
