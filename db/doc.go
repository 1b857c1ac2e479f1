// Package db holds the shape of the data: the goose migrations, which are embedded in the
// program, and schema.sql, their end state for reviewers.
//
// To change the shape, add a migration; never edit a released one. A migration is one file
// NNNNN_verb_object.sql with both directions, a header that says why and which locks it
// takes, and a comment on everything it creates. It sets meta.schema_version to its own
// number, and meta.oldest_binary to the lowest number that a program may have been built for
// and still run on the new shape. Then raise domain.SchemaVersion and run "make generate".
package db
