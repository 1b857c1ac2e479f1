package pgtest

import (
	"context"
	"maps"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// counts is a pgx tracer that counts the queries that ran without an error, by the name
// that sqlc leaves in the first line of their text. Every database has one, and all of them
// add to the one of the whole run.
type counts struct {
	mutex  sync.Mutex
	byName map[string]int
}

var wholeRun counts

// Executed tells how often this database has run the query of the name, without an error.
func (d *Database) Executed(query string) int {
	return d.counts.all()[query]
}

// Executed tells how often each query has run in all databases of this test run, by name.
func Executed() map[string]int {
	return wholeRun.all()
}

func (c *counts) all() map[string]int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return maps.Clone(c.byName)
}

func (c *counts) add(sql string) {
	name, found := queryName(sql)
	if !found {
		return
	}
	for _, each := range []*counts{c, &wholeRun} {
		each.mutex.Lock()
		if each.byName == nil {
			each.byName = map[string]int{}
		}
		each.byName[name]++
		each.mutex.Unlock()
	}
}

func queryName(sql string) (name string, found bool) {
	rest, found := strings.CutPrefix(sql, "-- name: ")
	if !found {
		return "", false
	}
	name, _, found = strings.Cut(rest, " ")
	return name, found
}

type textKey struct{}

// TraceQueryStart remembers the statement's text for TraceQueryEnd, which is not told.
func (c *counts) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, textKey{}, data.SQL)
}

// TraceQueryEnd counts a statement that was sent alone.
func (c *counts) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	if text, ok := ctx.Value(textKey{}).(string); ok && data.Err == nil {
		c.add(text)
	}
}

// TraceBatchStart has nothing to remember.
func (c *counts) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// TraceBatchQuery counts a statement of a pipeline.
func (c *counts) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	if data.Err == nil {
		c.add(data.SQL)
	}
}

// TraceBatchEnd has nothing to count.
func (c *counts) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
