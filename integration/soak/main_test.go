package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-pg/holdfast/integration/pgtest"
	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

func TestMain(m *testing.M) {
	os.Exit(pgtest.Main(m))
}

// What cannot be judged is neither good nor broken.
func TestExecute_NothingToJudgeEndsWithTwo(t *testing.T) {
	t.Parallel()
	full, cut := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "notes"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cut, history.WALFile), []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"run --length soon", "run --length 0s", "run --length -1s", "run --rate 0", "run now", "run --dir " + full,
		"check", "check " + cut, "check " + filepath.Join(cut, "nowhere"), "check " + cut + " " + full,
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			if code := execute(append([]string{"soak"}, strings.Fields(args)...)); code != 2 {
				t.Errorf("ended with %d, want 2", code)
			}
		})
	}
}

func TestStartSlot_ServerWithoutLogicalDecodingIsRefused(t *testing.T) {
	t.Parallel()
	err := startSlot(t.Context(), pgtest.Empty(t).Conn(t))
	if err == nil || !strings.Contains(err.Error(), "wal_level=logical") {
		t.Errorf("error %v, want one that says what to start the server with", err)
	}
}
