// Package bench holds the statements with which the bench looks at its server and counts what
// became of its jobs; jobs are enqueued, claimed and settled by the product's own statements.
// Everything but this file and the SQL is generated.
package bench
