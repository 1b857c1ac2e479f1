package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestAsk_OnlyYesIsYes(t *testing.T) {
	for answer, want := range map[string]error{
		"y\n": nil, " YES \n": nil, "yes": nil,
		"n\n": errDeclined, "\n": errDeclined, "": errDeclined, "yeah\n": errDeclined,
	} {
		var out bytes.Buffer
		if err := ask(t.Context(), "redrive 2 jobs", strings.NewReader(answer), &out); !errors.Is(err, want) {
			t.Errorf("after %q: %v, want %v", answer, err, want)
		}
		if out.String() != "redrive 2 jobs? [y/N] " {
			t.Errorf("it asks %q", out.String())
		}
	}
}

func TestAsk_CtrlCIsNoAnswer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in, other := io.Pipe() // Nobody answers.
	defer other.Close()
	if err := ask(ctx, "redrive 2 jobs", in, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
