package worker

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func handlersOf(kinds ...string) map[string]Handler {
	handlers := map[string]Handler{}
	for _, kind := range kinds {
		handlers[kind] = Handler{kind: kind}
	}
	return handlers
}

func TestFacts_KindsAreSaidUnlessThereIsNoEndToThem(t *testing.T) {
	t.Parallel()
	many := make([]string, 11)
	for i := range many {
		many[i] = strings.Repeat(strconv.Itoa(i%10), 100-i)
	}
	for name, test := range map[string]struct{ kinds, want []string }{
		"some":           {[]string{"send", "print"}, []string{"print", "send"}},
		"all the others": {[]string{"send", ""}, nil},
		"just enough":    {many[:10], slices.Sorted(slices.Values(many[:10]))},
		"too many":       {many, nil},
	} {
		got := ReadFacts(Config{}.facts(handlersOf(test.kinds...)).encode())
		if !slices.Equal(got.Kinds, test.want) {
			t.Errorf("%s: says %q, want %q", name, got.Kinds, test.want)
		}
		for _, kind := range slices.Concat(test.kinds, []string{"another"}) {
			if want := test.want == nil || kind != "another"; got.Runs(kind) != want {
				t.Errorf("%s: runs %q: %t, want %t", name, kind, got.Runs(kind), want)
			}
		}
	}
}

func TestFacts_WhatAnotherVersionSaysIsReadAsFarAsItIsKnown(t *testing.T) {
	t.Parallel()
	for metadata, want := range map[string]int{
		`{"concurrency": 4, "zone": "b"}`: 4, `{"affinity": 7, "concurrency": 4}`: 4, `{}`: 0, `[]`: 0, ``: 0,
	} {
		got := ReadFacts(json.RawMessage(metadata))
		if got.Concurrency != want || !got.Runs("any") || got.WorkerTTL != 0 {
			t.Errorf("%s is read as %+v", metadata, got)
		}
	}
}
