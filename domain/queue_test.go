package domain

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Nothing is connected before the first call, so no server is needed.
func TestNewQueue_RefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@nowhere.invalid/nothing")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for want, option := range map[string]QueueOption{
		"3 is less than 4": Connections(3),
		"cannot be read":   ListenOn("postgres://user:secret@host:port/name"),
	} {
		var invalid *InvalidError
		if _, err := NewQueue(pool, option); !errors.As(err, &invalid) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
	queue, err := NewQueue(pool, Connections(0), ListenOn(""))
	if err != nil {
		t.Fatal(err)
	}
	defer queue.Close()
	if own := queue.pool.Config().MaxConns + queue.work.Config().MaxConns; own != DefaultConnections {
		t.Errorf("%d connections by default, want %d", own, DefaultConnections)
	}
}
