// Package integration holds the promises of docs/guarantees.md, each as a test on a real
// Postgres, and the rules about the tree as a whole.
package integration

import (
	"os"
	"testing"

	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(victimURL); url != "" {
		os.Exit(runVictim(url))
	}
	if dir := os.Getenv(natsDir); dir != "" {
		os.Exit(runNATS(dir, os.Getenv(natsPort)))
	}
	if url := os.Getenv(relayURL); url != "" {
		os.Exit(runTestRelay(url, os.Getenv(relayTo)))
	}
	os.Exit(pgtest.Main(m, everyQueryRan))
}
