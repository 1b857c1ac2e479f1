package domain

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestQueueChange_NothingGivenChangesNothing(t *testing.T) {
	t.Parallel()
	settings := DefaultQueueSettings("mail")
	if got, err := (QueueChange{}).Apply(settings); err != nil || got != settings {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestQueueChange_EverySettingGivenIsTaken(t *testing.T) {
	t.Parallel()
	got, err := QueueChange{
		Ordered: new(true), MaxAttempts: new(9), RetentionMode: new(RetentionKeep), KeepFor: new(time.Hour),
		Retention: new(2 * time.Hour), DedupeWindow: new(time.Minute), Ring: new(false),
	}.Apply(DefaultQueueSettings("mail"))
	want := QueueSettings{
		Name: "mail", Ordered: true, MaxAttempts: 9, RetentionMode: RetentionKeep, KeepFor: time.Hour,
		Retention: 2 * time.Hour, DedupeWindow: time.Minute,
	}
	if err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestQueueChange_OutOfBoundsIsRefusedInWords(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		name   string
		change QueueChange
		words  string
	}{
		"no name":                {"", QueueChange{}, "queue: is empty"},
		"a long name":            {strings.Repeat("ä", 201), QueueChange{}, "queue: has 201 characters, 200 at most"},
		"half a character":       {"\xff", QueueChange{}, "queue: is not valid UTF-8"},
		"no attempt":             {"mail", QueueChange{MaxAttempts: new(0)}, "max attempts: 0 is not between 1 and 1000000"},
		"attempts past int32":    {"mail", QueueChange{MaxAttempts: new(1<<32 + 1)}, "max attempts: 4294967297 is not between 1 and 1000000"},
		"unknown mode":           {"mail", QueueChange{RetentionMode: new(RetentionMode("burn"))}, `retention mode: "burn" is none of archive, keep, drop`},
		"negative keep for":      {"mail", QueueChange{KeepFor: new(-time.Second)}, "keep for: -1s is negative"},
		"negative retention":     {"mail", QueueChange{Retention: new(-time.Second)}, "retention: -1s is negative"},
		"keep past retention":    {"mail", QueueChange{KeepFor: new(time.Hour), Retention: new(time.Minute)}, "keep for: 1h0m0s is longer than the retention of 1m0s"},
		"no dedupe window":       {"mail", QueueChange{DedupeWindow: new(time.Duration(0))}, "dedupe window: 0s is not positive"},
		"less than Postgres has": {"mail", QueueChange{DedupeWindow: new(999 * time.Nanosecond)}, "dedupe window: 999ns is not positive"},
	}
	for name, test := range tests {
		err := test.change.check(test.name)
		if invalid := new(InvalidError); !errors.As(err, &invalid) || !strings.Contains(err.Error(), test.words) {
			t.Errorf("%s: %v, want %q", name, err, test.words)
		}
	}
}

// A queue whose other settings allow them: only the database knows.
func TestQueueChange_OneSideOfARelationIsLeftToTheDatabase(t *testing.T) {
	t.Parallel()
	for _, change := range []QueueChange{{KeepFor: new(90 * 24 * time.Hour)}, {Retention: new(time.Minute)}} {
		if err := change.check("mail"); err != nil {
			t.Errorf("%+v: %v", change, err)
		}
		if _, err := change.Apply(DefaultQueueSettings("mail")); err == nil {
			t.Errorf("%+v goes with the defaults", change)
		}
	}
}
