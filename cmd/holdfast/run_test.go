package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/app"
)

// The tests say themselves which database a command gets. None of them is parallel: the
// command line library sets variables of its own package while it runs.
//
// With HOLDFAST_TEST_AS_PROGRAM the binary is the program itself, for tests of what calls it.
func TestMain(m *testing.M) {
	if os.Getenv("HOLDFAST_TEST_AS_PROGRAM") != "" {
		main()
	}
	for _, name := range []string{app.EnvDatabaseURL, app.EnvGenericDatabaseURL} {
		if err := os.Unsetenv(name); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// result is what became of one command line.
type result struct {
	code           int
	stdout, stderr string
}

// execute runs a command line without a process of its own.
func execute(t *testing.T, args ...string) result {
	t.Helper()
	// A command that waits for a database must not hold the test up.
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	return executeWith(ctx, "", args...)
}

func executeWith(ctx context.Context, stdin string, args ...string) result {
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, strings.NewReader(stdin), &stdout, &stderr)
	return result{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

// refused checks that a command line is a usage error that says each of the words, on
// stderr only.
func (r result) refused(t *testing.T, words ...string) {
	t.Helper()
	if r.code != exitUsage {
		t.Errorf("exit code %d, want %d", r.code, exitUsage)
	}
	if r.stdout != "" {
		t.Errorf("stdout: %s", r.stdout)
	}
	if !strings.HasPrefix(r.stderr, "holdfast: ") || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("want one line on stderr that begins with the program's name, got: %s", r.stderr)
	}
	for _, word := range words {
		if !strings.Contains(r.stderr, word) {
			t.Errorf("stderr does not say %q: %s", word, r.stderr)
		}
	}
}
