// Package simulate plays short stories about workers in virtual time: the real loop of package
// worker on the queue of package domain/model, without a database, and with the same output for
// the same seed, byte for byte.
//
// The loop is a dozen goroutines a worker, and nobody knows in which order Go runs those that
// can run. So one thing happens at a time. Whatever a worker waits for that is not its own
// memory is a moment of the schedule: each timer of its clock, each statement that it sends to
// the queue, each ring that it hears, and each step of a handler. The schedule takes the
// earliest moment, lets it happen, waits until every goroutine rests again, and only then takes
// the next one. Moments of the same time have an order that does not depend on who was quicker:
// by process, then by what they are.
//
// What is left to the order of goroutines is what a worker does in its own memory between two
// moments. That has one cause, so it is mostly one goroutine's; where it is several, such as
// slots that take jobs of the same claim, they are alike, or each goes to a moment of its own
// next, which brings them into order. What they tell meanwhile is sorted before it is recorded.
// Chance is no sequence that somebody could draw from first: it is a function of the seed, the
// process and the time. Timeouts of statements are real time and therefore ignored.
//
// That every goroutine rests is known, not guessed: see rest. Package testing/synctest knows it
// too, but is for tests only.
package simulate
