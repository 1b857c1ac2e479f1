package domain

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestOutcomeOf_EveryKindOfError(t *testing.T) {
	t.Parallel()
	broken := errors.New("no answer")
	backoff := Backoff(3, 0.25)
	fenced := func(text string) Outcome {
		return Outcome{Verdict: Release, Delay: fencedDelay, Event: EventFenced, Error: text}
	}
	tests := map[string]struct {
		err  error
		want Outcome
	}{
		"nothing":                     {nil, Outcome{Verdict: Complete}},
		"an error":                    {broken, Outcome{Verdict: Retry, Delay: backoff, Error: "no answer"}},
		"retry":                       {RetryIn(time.Minute, broken), Outcome{Verdict: Retry, Delay: time.Minute, Error: "no answer"}},
		"retry at once":               {RetryIn(-time.Minute, broken), Outcome{Verdict: Retry, Error: "no answer"}},
		"retry without a reason":      {RetryIn(time.Minute, nil), Outcome{Verdict: Retry, Delay: time.Minute, Error: "the handler gave no reason"}},
		"retry, wrapped":              {fmt.Errorf("send: %w", RetryIn(time.Minute, broken)), Outcome{Verdict: Retry, Delay: time.Minute, Error: "send: no answer"}},
		"failure":                     {FailWith(broken), Outcome{Verdict: Fail, Error: "no answer"}},
		"failure without a reason":    {FailWith(nil), Outcome{Verdict: Fail, Error: "the handler gave no reason"}},
		"failure, wrapped":            {fmt.Errorf("send: %w", FailWith(broken)), Outcome{Verdict: Fail, Error: "send: no answer"}},
		"failure, joined":             {errors.Join(broken, FailWith(errors.New("no such order"))), Outcome{Verdict: Fail, Error: "no answer\nno such order"}},
		"failure around a retry":      {FailWith(RetryIn(time.Minute, broken)), Outcome{Verdict: Fail, Error: "no answer"}},
		"retry around a failure":      {RetryIn(time.Minute, FailWith(broken)), Outcome{Verdict: Fail, Error: "no answer"}},
		"snooze":                      {Snooze(time.Hour), Outcome{Verdict: Release, Delay: time.Hour}},
		"snooze into the past":        {Snooze(-time.Hour), Outcome{Verdict: Release}},
		"snooze, wrapped":             {fmt.Errorf("send: %w", Snooze(time.Hour)), Outcome{Verdict: Release, Delay: time.Hour}},
		"snooze, joined to a failure": {errors.Join(FailWith(broken), Snooze(time.Hour)), Outcome{Verdict: Release, Delay: time.Hour}},
		"fenced":                      {ErrFenced, fenced(ErrFenced.Error())},
		"fenced, wrapped":             {fmt.Errorf("charge: %w", ErrFenced), fenced("charge: " + ErrFenced.Error())},
		"fenced, joined":              {errors.Join(broken, ErrFenced), fenced("no answer\n" + ErrFenced.Error())},
		"retry of what was fenced":    {RetryIn(time.Minute, ErrFenced), Outcome{Verdict: Retry, Delay: time.Minute, Error: ErrFenced.Error()}},
		"failure of what was fenced":  {FailWith(ErrFenced), Outcome{Verdict: Fail, Error: ErrFenced.Error()}},
		"text that Postgres refuses":  {errors.New("a\x00b\xff"), Outcome{Verdict: Retry, Delay: backoff, Error: "ab\uFFFD"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := OutcomeOf(test.err, 3, 0.25); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestOutcomeOf_CutsLongErrors(t *testing.T) {
	t.Parallel()
	long := errors.New(strings.Repeat("x", 10<<20))
	for name, err := range map[string]error{"an error": long, "retry": RetryIn(0, long), "failure": FailWith(long), "fenced": errors.Join(long, ErrFenced)} {
		if got := len(OutcomeOf(err, 1, 0).Error); got != errorTextLimit {
			t.Errorf("%s: the text has %d bytes, want %d", name, got, errorTextLimit)
		}
	}
}

func TestReleaseFor_SaysAReasonThatPostgresTakes(t *testing.T) {
	t.Parallel()
	want := Outcome{Verdict: Release, Delay: time.Minute, Event: EventReleased, Error: "ab\uFFFD"}
	if got := ReleaseFor("a\x00b\xff", time.Minute); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestHandlerErrors_ShowTheirCause(t *testing.T) {
	t.Parallel()
	cause := errors.New("no answer")
	for name, err := range map[string]error{"retry": RetryIn(time.Minute, cause), "failure": FailWith(cause)} {
		if !errors.Is(err, cause) || err.Error() != "no answer" {
			t.Errorf("%s hides its cause: %v", name, err)
		}
	}
	if got := Snooze(90 * time.Second).Error(); got != "snoozed for 1m30s" {
		t.Errorf("a snooze says %q", got)
	}
}
