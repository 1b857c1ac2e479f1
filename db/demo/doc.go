// Package demo holds the tables and the statements of the demo's own application, which uses
// Holdfast as any application would: its sqlc package stands beside the generated store and
// shares transactions with it. Everything but this file and the SQL is generated.
package demo

import _ "embed"

// Schema is the SQL that makes the demo's tables.
//
//go:embed schema.sql
var Schema string
