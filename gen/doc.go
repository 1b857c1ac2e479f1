// Package gen is what sqlc wrote from queries/*.sql: one typed method a statement.
//
// Its methods check nothing. Package domain wraps each of them once, with the fence and the
// meaning of zero rows; call those unless you know why not. Everything but this file is
// generated: change the SQL and run "make generate".
package gen
