//go:build unix && !aix && !solaris

package embedded

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A copy of the test binary with this variable set is a program that starts a server and, by the value,
// waits to be killed or returns without calling Stop.
const programVariable = "HOLDFAST_EMBEDDED_PROGRAM"

func TestMain(m *testing.M) {
	if what := os.Getenv(programVariable); what != "" {
		os.Exit(program(what))
	}
	syscall.Umask(0o022) // The server's account runs the programs that the tests write.
	os.Exit(m.Run())
}

func program(what string) int {
	s, err := Start(context.Background(), Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(s.URL())
	if what == "waits" {
		<-context.Background().Done()
	}
	return 0
}

// runProgram runs the program with a temporary directory of its own and as the leader of a process
// group, as a shell would.
func runProgram(t *testing.T, what string) (cmd *exec.Cmd, lines *bufio.Reader, temp string) {
	t.Helper()
	temp = openDir(t)
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), programVariable+"="+what, "TMPDIR="+temp)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, bufio.NewReader(out), temp
}

func readURL(t *testing.T, lines *bufio.Reader) string {
	t.Helper()
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatalf("read the server's address from the program: %v", err)
	}
	return strings.TrimSpace(line)
}

func TestGuard_CleansUpAfterTheProgram(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]struct {
		program string
		by      func(pid int) error
	}{
		"killed":       {"waits", func(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }},
		"group killed": {"waits", func(pid int) error { return syscall.Kill(-pid, syscall.SIGKILL) }},
		"Ctrl-C":       {"waits", func(pid int) error { return syscall.Kill(-pid, syscall.SIGINT) }},
		"plain return": {"returns", func(int) error { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd, lines, temp := runProgram(t, end.program)
			url := readURL(t, lines)
			if end.program == "waits" && !listens(t, url) {
				t.Fatal("the server does not listen")
			}
			if err := end.by(cmd.Process.Pid); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // Killed, in most cases.
			eventually(t, "the server is gone", func() bool { return !listens(t, url) })
			eventually(t, "the data directory is gone", func() bool { return isEmpty(t, temp) })
		})
	}
}

func TestGuard_CleansUpAfterAProgramKilledDuringInitdb(t *testing.T) {
	t.Parallel()
	cmd, _, temp := runProgram(t, "waits")
	eventually(t, "initdb is at work", func() bool {
		files, _ := filepath.Glob(filepath.Join(temp, "*", "data", "PG_VERSION"))
		return len(files) > 0
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	eventually(t, "the data directory is gone", func() bool { return isEmpty(t, temp) })
}
