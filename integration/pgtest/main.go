package pgtest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"
)

// current is the server of this test run, from Main's beginning to its end.
var current *server

// Main runs the tests of a package on one server, for use in TestMain, and returns the exit
// code. The checks come afterwards, if every test of the package ran and none failed: what
// must hold for the run as a whole.
func Main(m *testing.M, checks ...func() error) int {
	if !flag.Parsed() {
		flag.Parse()
	}
	if set("test.list") {
		return m.Run()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	var err error
	if current, err = start(ctx, settingsFromEnvironment()); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return 1
	}
	fmt.Fprintln(os.Stderr, "pgtest:", current.description)
	code := m.Run()
	if code == 0 && !set("test.run") && !set("test.skip") {
		code = runChecks(checks)
	}
	if current.pooler != nil {
		fmt.Fprintf(os.Stderr, "pgtest: %d databases of tests were used through %s\n", current.pooler.served.Load(), current.pooler.version)
	}
	if err := current.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		code = max(code, 1)
	}
	return code
}

// set tells whether a flag of the test binary was given.
func set(name string) bool {
	given := flag.Lookup(name)
	return given != nil && given.Value.String() != given.DefValue
}

func runChecks(checks []func() error) int {
	code := 0
	for _, check := range checks {
		if err := check(); err != nil {
			fmt.Fprintln(os.Stderr, "FAIL:", err)
			code = 1
		}
	}
	return code
}
