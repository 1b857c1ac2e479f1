package demo

import (
	"bytes"
	"errors"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// seconds stand at the beginning of each line of the story.
var seconds = regexp.MustCompile(`(?m)^ *\d+\.\d s  `)

func newShow(out *bytes.Buffer, options Options) *show {
	options.Out = out
	return &show{Options: options, story: newStory(out), reclaims: newReclaims()}
}

func TestStory_ReclaimsAreToldBySetWhenNoMoreOfThemCome(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := newShow(&out, Options{})
	s.tellReclaims(false)
	for range 3 {
		s.reclaims.add("id of w2", handover{by: "w1", from: "w2"})
	}
	s.tellReclaims(false)
	if out.Len() > 0 {
		t.Errorf("told while more may come: %s", out.String())
	}
	s.reclaims.add("id of w3", handover{by: "w1", from: "w3"})
	s.tellReclaims(false)
	s.tellReclaims(false)
	s.tellReclaims(true)
	want := "w1 reclaims 3 jobs of w2: their leases have ended\nw1 reclaims 1 job of w3: its lease has ended\n"
	if got := seconds.ReplaceAllString(out.String(), ""); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
	if n := s.reclaims.countFrom("id of w2"); n != 3 {
		t.Errorf("%d jobs counted as reclaimed from w2, want 3", n)
	}
}

func TestStory_HasNoColourWhereNoTerminalIs(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := newStory(&out)
	s.title("a title")
	s.warn("%s is killed", "w1")
	if got := out.String(); !strings.HasPrefix(got, "holdfast demo: a title\n\n") || !strings.HasSuffix(got, "w1 is killed\n") || strings.Contains(got, "\x1b") {
		t.Errorf("got %q", got)
	}
}

func TestJudge_OneRowThatDiffersBreaksTheTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := newShow(&out, Options{})
	if err := s.print([]row{{"jobs completed", 302, 302}}); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "302     302  ok\n") || !strings.Contains(out.String(), "Every receipt was sent") {
		t.Errorf("printed:\n%s", out.String())
	}
	out.Reset()
	err := s.print([]row{{"jobs completed", 302, 302}, {"receipts sent", 302, 303}})
	if !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "1 of 2 rows differ") {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(out.String(), "302     303  differs\n") || strings.Contains(out.String(), "Every receipt") {
		t.Errorf("printed:\n%s", out.String())
	}
}

func TestQuote_MakesOneWordForTheShell(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/usr/bin/holdfast", "/home/a b/holdfast", `/a'b/"c"/$HOME/back\slash`} {
		printed, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", "printf %s "+quote(path)).Output()
		if err != nil || string(printed) != path {
			t.Errorf("%s becomes %s (%v)", path, printed, err)
		}
	}
}

func TestSteps_AreCountedByTheClaimThatTookThem(t *testing.T) {
	t.Parallel()
	var s steps
	older, newer := &workerProcess{name: "w4"}, &workerProcess{name: "w5"}
	s.add(step{Name: stepReady, Token: 17, by: older})
	s.add(step{Name: stepPrinted, Token: 23, by: newer})
	s.add(step{Name: stepRefused, Token: 17, by: older})
	for token, want := range map[int64]int{17: 1, 23: 0} {
		if n := s.count(token, stepRefused); n != want {
			t.Errorf("%d writes under token %d were refused, want %d", n, token, want)
		}
	}
	found, exists := s.find(func(taken step) bool { return taken.Name == stepPrinted })
	if !exists || found.by != newer {
		t.Errorf("found %+v", found)
	}
}
