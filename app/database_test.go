package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
)

func connectTo(ctx context.Context, url string, patience time.Duration) error {
	pool, err := Connect(ctx, url, patience, slog.New(slog.DiscardHandler))
	if err == nil {
		pool.Close()
	}
	return err
}

func TestConnect_SilentServerIsUnreachableAfterThePatience(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	err = connectTo(ctx, "postgres://"+listener.Addr().String()+"/db", 100*time.Millisecond)
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "no answer within 100ms") {
		t.Errorf("got %v", err)
	}
}

func TestConnect_CancelledIsNotUnreachable(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := connectTo(ctx, "postgres://127.0.0.1:1/db", time.Minute)
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnreachable) {
		t.Errorf("got %v", err)
	}
}

func TestOpenPool_AtSignBelongsBeforeTheHostOnly(t *testing.T) {
	t.Parallel()
	for url, valid := range map[string]bool{
		"postgres://user:secret@host/db":                      true,
		"postgres://host/db":                                  true,
		"postgres:///db":                                      true,
		"postgres://user@host/db?application_name=me@host":    true,
		"postgres://user:s%40cret@host/db%40home":             true,
		"host=/run/postgresql user=me password=p@ss/word@x":   true,
		"postgres://user:se@cret@host/db":                     false,
		"postgres://user:12/cret@host/db":                     false,
		"postgres://user@host/db@home":                        false,
		"postgres://user:se@cret@host/db?application_name=me": false,
		"postgres://host:5432?user=me&password=se@cret":       false,
		"postgres://host:5432?user=me&pass%77ord=se@cret":     false,
		"postgres://user:se?cret@host/db":                     true,
	} {
		pool, err := openPool(t.Context(), url)
		if err == nil {
			pool.Close()
		}
		if valid != (err == nil) || !valid && !errors.Is(err, ErrInvalidURL) {
			t.Errorf("%s: %v", url, err)
		}
	}
}
