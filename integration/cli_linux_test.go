package integration

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

func TestExec_ProgramDiesWithItsWorker(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	file := filepath.Join(t.TempDir(), "begun")
	enqueueCLI(t, database, "tick")
	worker := work(t, database, "exec sh -c 'echo $$ >"+file+"; exec sleep 600'")
	program := pidIn(t, file)
	worker.signal(t, syscall.SIGKILL)
	worker.ends(t, -1)
	pgtest.Eventually(t, patience, "the program is gone", func() bool { return syscall.Kill(program, 0) != nil })
}
