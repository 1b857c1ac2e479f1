package domain

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
)

// The generated code closes rows that have ended and then closes them again. The connection
// may be another call's by then.
func TestPipeline_RowsLetTheirConnectionGoOnce(t *testing.T) {
	t.Parallel()
	lost := errors.New("connection lost")
	results := &closing{err: lost}
	rows := &pipelineRows{Rows: noRows{}, results: results}
	for range 2 {
		if rows.Next() {
			t.Error("there is a row")
		}
		rows.Close()
	}
	if results.times != 1 || !errors.Is(rows.Err(), lost) {
		t.Errorf("closed %d times, want once; error %v, want %v", results.times, rows.Err(), lost)
	}
}

type closing struct {
	pgx.BatchResults
	err   error
	times int
}

func (c *closing) Close() error {
	c.times++
	return c.err
}

type noRows struct{ pgx.Rows }

func (noRows) Next() bool { return false }
func (noRows) Close()     {}
func (noRows) Err() error { return nil }
