package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

const (
	// exitFail is EX_DATAERR of sysexits.h: no attempt can ever succeed.
	exitFail = 65

	// errorTail is how much of a program's stderr is kept for last_error, in bytes. The column
	// takes 8 KB and cuts at the end, where stderr says most: the exit status has to fit too.
	errorTail = 8000
)

// Exec runs a shell command for every job.
type Exec struct {
	Command string    // What /bin/sh runs.
	Stdout  io.Writer // Gets the program's stdout.
	Stderr  io.Writer // Gets the program's stderr.

	// KillDelay is how long a program has to end after its SIGTERM. Default: 5 s.
	KillDelay time.Duration
}

// Run runs the command as a job's handler: the payload on its stdin, the job's facts in
// HOLDFAST_* variables. Its exit code ends the job: 0 completes it, 65 fails it for good, 75
// and every other code retry it; the tail of stderr becomes last_error. When the context
// ends, because the lease is lost or a drain passed its deadline, the program and its
// children get SIGTERM, and SIGKILL after KillDelay; children that are left when the program
// has ended get SIGKILL at once.
func (e Exec) Run(ctx context.Context, job domain.ClaimedJob) error {
	tail := &tailWriter{}
	program := exec.CommandContext(ctx, "/bin/sh", "-c", e.Command)
	program.Stdin = bytes.NewReader(job.Payload)
	program.Stdout = e.Stdout
	program.Stderr = io.MultiWriter(tail, e.Stderr)
	program.Env = append(os.Environ(), jobEnvironment(job)...)
	program.WaitDelay = cmp.Or(e.KillDelay, 5*time.Second)
	OwnProcessGroup(program)
	err := program.Run()
	switch {
	case ctx.Err() != nil:
		killGroup(program)
		return fmt.Errorf("the program was stopped: %w", context.Cause(ctx))
	case program.ProcessState != nil && program.ProcessState.Success():
		// Whatever became of its pipes: it may leave a child behind that holds them open.
		return nil
	default:
		return readExit(err, tail.String())
	}
}

// jobEnvironment tells the program which job it runs.
func jobEnvironment(job domain.ClaimedJob) []string {
	return []string{
		"HOLDFAST_JOB_ID=" + job.ID.String(),
		"HOLDFAST_QUEUE=" + job.Queue,
		"HOLDFAST_KIND=" + job.Kind,
		"HOLDFAST_KEY=" + job.PartitionKey,
		"HOLDFAST_ATTEMPT=" + strconv.Itoa(job.Attempt),
		"HOLDFAST_MAX_ATTEMPTS=" + strconv.Itoa(job.MaxAttempts),
		"HOLDFAST_FENCE=" + strconv.FormatInt(job.Fence(), 10),
		"HOLDFAST_WORKER_ID=" + job.WorkerID,
	}
}

// readExit turns how a program failed into a handler's error.
func readExit(err error, stderr string) error {
	if stderr = strings.TrimSpace(stderr); stderr != "" {
		err = fmt.Errorf("%w: %s", err, stderr)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == exitFail {
		return domain.FailWith(err)
	}
	return err
}

// tailWriter keeps the end of what is written to it.
type tailWriter struct {
	kept []byte
}

func (w *tailWriter) Write(p []byte) (int, error) {
	w.kept = append(w.kept, p...)
	if excess := len(w.kept) - errorTail; excess > 0 {
		w.kept = append(w.kept[:0], w.kept[excess:]...)
	}
	return len(p), nil
}

func (w *tailWriter) String() string {
	return string(w.kept)
}
