package bench

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

func TestOptions_WhatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	sound := Options{Size: SizeSmall, Payload: 128, Concurrency: 64}
	if err := sound.Check(); err != nil {
		t.Fatal(err)
	}
	for words, change := range map[string]func(o *Options){
		`--size: "huge" is none of small, full`:          func(o *Options) { o.Size = "huge" },
		"--share: 70 is not between 0 and 1":             func(o *Options) { o.Share = 70 },
		"--payload: 10 is not between 64":                func(o *Options) { o.Payload = 10 },
		"--duration: 10ms is less than a second":         func(o *Options) { o.Duration = 10 * time.Millisecond },
		`scenario: "drian" is none of drain, steady, sl`: func(o *Options) { o.Scenarios = []string{"steady", "drian"} },
	} {
		o := sound
		change(&o)
		var invalid *domain.InvalidError
		if err := o.Check(); !errors.As(err, &invalid) || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want: %s", err, words)
		}
	}
}
