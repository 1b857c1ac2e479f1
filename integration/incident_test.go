package integration

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// A newcomer who types what docs/incident.md shows sees what it shows.
func TestDocs_IncidentGoesAsItIsTold(t *testing.T) {
	t.Parallel()
	document := read(t, "../docs/incident.md")
	shell := openShell(t, pgtest.Empty(t))
	for _, block := range fencedBlocks(document) {
		if block.language == "sh" && strings.HasPrefix(block.text, "#!/bin/sh\n") {
			if err := os.WriteFile(filepath.Join(shell.dir, "pay"), []byte(block.text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	session := newPlayedPage()
	typed := 0
	for _, block := range fencedBlocks(document) {
		if block.language == "console" {
			typed += playBlock(t, shell, session, block.text)
		}
	}
	if typed < 20 {
		t.Errorf("only %d commands were found", typed)
	}
}

// playBlock types the commands of a block and compares what they print. It returns how many
// there were.
func playBlock(t *testing.T, shell *shell, session *playedPage, block string) int {
	t.Helper()
	steps := strings.Split("\n"+block, "\n$ ")[1:]
	for _, step := range steps {
		command, want, _ := strings.Cut(step, "\n")
		command = session.translated(command)
		var got string
		shown := func() bool {
			got = shell.run(t, command)
			return session.matches(want, got)
		}
		if onlyLooks.MatchString(command) {
			lookAgain(t, shown)
		} else {
			shown()
		}
		if !session.matches(want, got) {
			t.Fatalf("$ %s\nprints:\n%s\nthe document shows:\n%s", command, got, want)
		}
		session.learn(want, got)
	}
	return len(steps)
}

// lookAgain looks every half second, until it sees what it looks for or loses patience: each look
// is a process.
func lookAgain(t *testing.T, shown func() bool) {
	t.Helper()
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	for giveUp := time.Now().Add(patience); !shown() && time.Now().Before(giveUp); {
		<-again.C
	}
}

// onlyLooks are the commands that change nothing: they are asked again until what they show has
// come to be, as a person would.
var onlyLooks = regexp.MustCompile(`^holdfast (status|jobs (explain|list|show)|dead (groups|list)|events list|leases list|workers list)\b`)

// playedPage knows which ids of a document are which of the run.
type playedPage struct {
	actual map[string]string
}

func newPlayedPage() *playedPage { return &playedPage{actual: map[string]string{}} }

var (
	identity = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|[\w.-]+-\d+-[0-9a-f]{16}\b`)
	logLine  = regexp.MustCompile(`(?m)^(\{"time":.*|.*\bKilled\b.*)\n?`)
	spaces   = regexp.MustCompile(`[ \t]+`)
	passing  = []struct {
		pattern *regexp.Regexp
		mask    string
	}{
		{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? UTC`), "TIME"},
		{regexp.MustCompile(`\b(\d+(\.\d+)?(ms|s|m|h))+\b`), "SPAN"},
		{regexp.MustCompile(`\b\d{13,}\b`), "GENERATION"},
		{regexp.MustCompile(`attempt \d of 3 is over`), "attempt N of 3 is over"},
		{regexp.MustCompile(`(?m)^\d+ TIME`), "EVENT TIME"},
		{regexp.MustCompile(`(?m)^((?:default|payments) .*) [\d.]+ [\d.]+$`), "$1 RATE RATE"},
	}
)

// translated puts the run's ids into a command of the document.
func (s *playedPage) translated(command string) string {
	return identity.ReplaceAllStringFunc(command, func(shown string) string {
		if actual, known := s.actual[shown]; known {
			return actual
		}
		return shown
	})
}

// learn notes the ids of the run, in the order in which the document shows them.
func (s *playedPage) learn(want, got string) {
	shown, actual := identity.FindAllString(want, -1), identity.FindAllString(got, -1)
	for i, id := range shown {
		if _, known := s.actual[id]; !known && i < len(actual) {
			s.actual[id] = actual[i]
		}
	}
}

// matches compares without what passes, such as times, and without widths. An id that was seen
// before must be the same again. "…" stands for any lines.
func (s *playedPage) matches(want, got string) bool {
	pattern := regexp.QuoteMeta(plain(s.translated(want)))
	for _, id := range identity.FindAllString(want, -1) {
		if _, known := s.actual[id]; !known {
			pattern = strings.ReplaceAll(pattern, regexp.QuoteMeta(id), "(?:"+identity.String()+")")
		}
	}
	pattern = strings.ReplaceAll(pattern, "…\n", "(?s:.*)")
	pattern = strings.ReplaceAll(pattern, "\n…", "(?s:.*)")
	return regexp.MustCompile("^(?:" + pattern + ")$").MatchString(plain(logLine.ReplaceAllString(got, "")))
}

func plain(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimSpace(spaces.ReplaceAllString(line, " ")))
	}
	text = strings.TrimSpace(strings.Join(lines, "\n"))
	for _, each := range passing {
		text = each.pattern.ReplaceAllString(text, each.mask)
	}
	return text
}

// shell is a person's: it keeps its variables and what runs behind it.
type shell struct {
	dir   string
	stdin io.Writer
	lines chan string
}

func openShell(t *testing.T, database *pgtest.Database) *shell {
	t.Helper()
	s := &shell{dir: t.TempDir(), lines: make(chan string, 1000)}
	command := exec.Command("/bin/sh")
	command.Dir = s.dir
	command.Env = []string{
		"PATH=" + filepath.Dir(programPath(t)) + ":" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LC_ALL=C.UTF-8",
		"HOLDFAST_DATABASE_URL=" + database.DirectURL,
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // With what it has left running.
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	printed, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.stdin, command.Stdout, command.Stderr = stdin, writer, writer
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	go func() {
		defer close(s.lines)
		for scanner := bufio.NewScanner(printed); scanner.Scan(); {
			s.lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		_ = command.Wait()
		_ = printed.Close()
	})
	return s
}

const prompt = "--- the command has ended ---"

// run types a command and returns what is printed until it has ended.
func (s *shell) run(t *testing.T, command string) string {
	t.Helper()
	if _, err := fmt.Fprintf(s.stdin, "%s\necho '%s'\n", command, prompt); err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	deadline := time.After(patience)
	for {
		select {
		case line, open := <-s.lines:
			if !open {
				t.Fatalf("the shell has ended after %q; it printed:\n%s", command, printed.String())
			}
			if line == prompt {
				return printed.String()
			}
			printed.WriteString(line + "\n")
		case <-deadline:
			t.Fatalf("gave up after %s waiting for the end of %q", patience, command)
		}
	}
}
