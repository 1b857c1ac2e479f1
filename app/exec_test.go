//go:build unix

package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-pg/holdfast/domain"
)

// testJob is what the programs below work on.
func testJob() domain.ClaimedJob {
	return domain.ClaimedJob{
		Claim:        domain.Claim{ID: domain.JobID{6: 0x70, 8: 0x80, 15: 7}, Generation: 1<<32 + 9, WorkerID: "host-1-a b"},
		Queue:        "reports",
		Kind:         "nightly report",
		PartitionKey: "order:9182",
		Attempt:      2,
		MaxAttempts:  5,
		Payload:      json.RawMessage(`{"order_id": 9182}`),
	}
}

// runCommand runs a command on testJob and returns what it printed and how it settles.
func runCommand(t *testing.T, command string) (stdout, stderr string, outcome domain.Outcome) {
	t.Helper()
	var out, complaint bytes.Buffer
	err := Exec{Command: command, Stdout: &out, Stderr: &complaint}.Run(t.Context(), testJob())
	return out.String(), complaint.String(), domain.OutcomeOf(err, 1, 0)
}

func TestExec_ProgramGetsThePayloadOnStdin(t *testing.T) {
	t.Parallel()
	stdout, _, outcome := runCommand(t, "cat")
	if stdout != `{"order_id": 9182}` || outcome.Verdict != domain.Complete {
		t.Errorf("stdout %q, %+v", stdout, outcome)
	}
}

func TestExec_ProgramGetsTheJobInItsEnvironment(t *testing.T) {
	// Not parallel: it sets the environment.
	t.Setenv("HOLDFAST_QUEUE", "of the worker itself")
	t.Setenv("INHERITED", "yes")
	stdout, _, _ := runCommand(t, "env")
	job := testJob()
	for _, line := range []string{
		"HOLDFAST_JOB_ID=" + job.ID.String(),
		"HOLDFAST_QUEUE=reports",
		"HOLDFAST_KIND=nightly report",
		"HOLDFAST_KEY=order:9182",
		"HOLDFAST_ATTEMPT=2",
		"HOLDFAST_MAX_ATTEMPTS=5",
		"HOLDFAST_FENCE=4294967305",
		"HOLDFAST_WORKER_ID=host-1-a b",
		"INHERITED=yes",
	} {
		if !strings.Contains("\n"+stdout, "\n"+line+"\n") {
			t.Errorf("the environment lacks %q", line)
		}
	}
	if strings.Count(stdout, "HOLDFAST_QUEUE=") != 1 {
		t.Error("the environment has HOLDFAST_QUEUE twice")
	}
}

func TestExec_ExitCodeEndsTheJob(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, command string
		verdict       domain.Verdict
		lastError     string
	}{
		{"0 completes", "exit 0", domain.Complete, ""},
		{"0 completes whatever stderr says", "echo beware >&2", domain.Complete, ""},
		{"65 fails", "exit 65", domain.Fail, "exit status 65"},
		{"65 fails with what stderr says", "echo no such order >&2; exit 65", domain.Fail, "exit status 65: no such order"},
		{"75 is retried", "echo busy >&2; exit 75", domain.Retry, "exit status 75: busy"},
		{"1 is retried", "exit 1", domain.Retry, "exit status 1"},
		{"killed by a signal", "kill -KILL $$", domain.Retry, "signal: killed"},
		{"killed by 65's signal is no 65", "kill -ILL $$", domain.Retry, "signal: illegal instruction"},
		{"no such program", "/nosuch/program", domain.Retry, "exit status 127: /bin/sh: 1: /nosuch/program: not found"},
		{"blank lines around stderr", `printf '\n a \n b\n\n' >&2; exit 1`, domain.Retry, "exit status 1: a \n b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, _, outcome := runCommand(t, test.command)
			got := outcome.Error
			if test.name == "no such program" {
				// Shells word it differently.
				got, test.lastError = got[:len("exit status 127")], "exit status 127"
			}
			if outcome.Verdict != test.verdict || got != test.lastError {
				t.Errorf("got %s %q, want %s %q", outcome.Verdict, outcome.Error, test.verdict, test.lastError)
			}
		})
	}
}

func TestExec_LastErrorIsTheEndOfALongStderr(t *testing.T) {
	t.Parallel()
	_, stderr, outcome := runCommand(t, `i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo "line $i" >&2; done; exit 65`)
	if lines := strings.Count(stderr, "\n"); lines != 2000 {
		t.Errorf("%d lines of stderr are passed through, want all 2000", lines)
	}
	if !strings.HasPrefix(outcome.Error, "exit status 65: ") || !strings.HasSuffix(outcome.Error, "line 1999\nline 2000") {
		t.Errorf("the last error begins %.40q and ends %q", outcome.Error, outcome.Error[len(outcome.Error)-40:])
	}
	if n := len(outcome.Error); n < errorTail || n > 8<<10 {
		t.Errorf("the last error has %d bytes", n)
	}
}

func TestExec_CutBetweenTheBytesOfACharacterLosesNothingOfTheEnd(t *testing.T) {
	t.Parallel()
	tail := &tailWriter{}
	if _, err := io.WriteString(tail, "x"+strings.Repeat("€", errorTail)+"end"); err != nil {
		t.Fatal(err)
	}
	outcome := domain.OutcomeOf(readExit(errors.New("exit status 255"), tail.String()), 1, 0)
	if !strings.HasSuffix(outcome.Error, "€end") {
		t.Errorf("the last error ends %q", outcome.Error[len(outcome.Error)-20:])
	}
}

func TestExec_ProgramNeedNotReadItsStdin(t *testing.T) {
	t.Parallel()
	job := testJob()
	// More than a pipe holds.
	job.Payload = json.RawMessage(`"` + strings.Repeat("x", 250<<10) + `"`)
	for command, verdict := range map[string]domain.Verdict{
		"exec <&-; exit 0":      domain.Complete,
		"head -c 10 >/dev/null": domain.Complete,
		"exit 65":               domain.Fail,
	} {
		err := Exec{Command: command, Stdout: io.Discard, Stderr: io.Discard}.Run(t.Context(), job)
		if outcome := domain.OutcomeOf(err, 1, 0); outcome.Verdict != verdict {
			t.Errorf("%s: %+v", command, outcome)
		}
	}
}

func TestExec_ExitCodeCountsThoughAChildHoldsThePipes(t *testing.T) {
	t.Parallel()
	pidFile := filepath.Join(t.TempDir(), "pid")
	command := Exec{Command: "sleep 600 & echo $! >" + pidFile, Stdout: io.Discard, Stderr: io.Discard, KillDelay: shortDelay}
	if err := command.Run(t.Context(), testJob()); err != nil {
		t.Errorf("exit code 0 gives %v", err)
	}
	// Nobody stopped the program: what it left running is its own business.
	child := readPID(t, pidFile)
	if !alive(child) {
		t.Error("the child of a program that ended well is killed")
	}
	kill(t, child)
}

func TestExec_OutputThatCannotBePassedOnDoesNotChangeTheVerdict(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		full = closedFile(t)
	}
	defer full.Close()
	err = Exec{Command: "echo beware >&2; exit 0", Stdout: io.Discard, Stderr: full}.Run(t.Context(), testJob())
	if err != nil {
		t.Errorf("exit code 0 gives %v", err)
	}
	err = Exec{Command: "echo beware >&2; exit 65", Stdout: io.Discard, Stderr: full}.Run(t.Context(), testJob())
	if outcome := domain.OutcomeOf(err, 1, 0); outcome.Verdict != domain.Fail || !strings.Contains(outcome.Error, "beware") {
		t.Errorf("exit code 65 gives %+v", outcome)
	}
}

// closedFile is a file that cannot be written, where there is no /dev/full.
func closedFile(t *testing.T) *os.File {
	t.Helper()
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
