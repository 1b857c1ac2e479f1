// Package queries holds the text of every statement, beside what sqlc makes of it in gen: an
// error that is about a statement can say what stands in it.
package queries

import "embed"

// Files are the *.sql files of this folder.
//
//go:embed *.sql
var Files embed.FS
