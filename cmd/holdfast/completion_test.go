package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func TestCompletion_OffersWhatCanFollow(t *testing.T) {
	for _, test := range []struct {
		line string // "_" stands for an empty word.
		want string
	}{
		{"_", "demo simulate bench migrate enqueue work relay status top jobs dead events queues workers leases keys ring roles doctor tune health env completion version"},
		{"en", "enqueue env"},
		{"jobs s", "show"},
		{"migrate _", "up down status sql"},
		{"-o json migrate s", "status sql"},
		{"migrate --database-url jobs s", "status sql"},
		{"jobs show -o _", "table json jsonl"},
		{"jobs show --output js", "json jsonl"},
		{"jobs show --output=js", "--output=json --output=jsonl"},
		{"jobs show --output = js", "json jsonl"},
		{"jobs show --output =", "table json jsonl"},
		{"tune -o _", "table json jsonl go env"},
		{"tune --output=e", "--output=env"},
		{"work --log-level w", "warn"},
		{"work --affinity _", "ring none"},
		{"simulate --preset p", "pause"},
		{"work --lease _", ""},
		{"version --", "--output"},
		{"work --dr", "--drain-deadline"},
		{"jobs show _", ""},
		{"completion _", "bash zsh fish powershell"},
		{`completion ""`, "bash zsh fish powershell"},
		{"completion z", "zsh"},
		{"nosuch _", "demo simulate bench migrate enqueue work relay status top jobs dead events queues workers leases keys ring roles doctor tune health env completion version"},
		{"enqueue kind -- --ke", ""},
	} {
		t.Run(test.line, func(t *testing.T) {
			words := strings.Fields(test.line)
			for i, word := range words {
				if word == "_" {
					words[i] = ""
				}
			}
			got := execute(t, append(words, completionFlag)...)
			if offered := strings.Fields(got.stdout); got.code != exitDone || got.stderr != "" || !slices.Equal(offered, strings.Fields(test.want)) {
				t.Errorf("offers %v (exit code %d, stderr %q), want %s", offered, got.code, got.stderr, test.want)
			}
		})
	}
}

func TestCompletion_OffersEveryFlagOfACommandAndNoHiddenCommand(t *testing.T) {
	eachCommand(testApp(), func(path []string, command *cli.Command) {
		offered := strings.Fields(execute(t, append(path, "-", completionFlag)...).stdout)
		for _, flag := range command.Flags {
			if !slices.Contains(offered, "--"+flag.Names()[0]) {
				t.Errorf("%v: --%s is not offered", path, flag.Names()[0])
			}
		}
	})
	if got := execute(t, "demo-", completionFlag); got.stdout != "" {
		t.Errorf("offers %s", got.stdout)
	}
}

// The words behind a flag are those that the command takes.
func TestCompletion_ValuesThatAreOfferedAreTaken(t *testing.T) {
	for flag, values := range flagValues {
		used := false
		eachCommand(testApp(), func(_ []string, command *cli.Command) { used = used || hasFlag(command, flag) })
		if !used || len(values) == 0 {
			t.Errorf("no command has --%s", flag)
		}
	}
}

func TestCompletion_ScriptsSendTheFlag(t *testing.T) {
	for _, shell := range shells {
		if got := execute(t, "completion", shell); got.code != exitDone || !strings.Contains(got.stdout, completionFlag) {
			t.Errorf("%s: %+v", shell, got)
		}
	}
}

// The script runs in a real bash, which calls the program that go test has built.
func TestCompletion_BashCompletes(t *testing.T) {
	directory := t.TempDir()
	program := filepath.Join(directory, "holdfast")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// As the program, the test's binary runs the command line; see TestMain.
	wrapper := "#!/bin/bash\nHOLDFAST_TEST_AS_PROGRAM=1 exec '" + self + "' \"$@\"\n"
	if err := os.WriteFile(program, []byte(wrapper), 0o755); err != nil {
		t.Fatal(err)
	}
	script := execute(t, "completion", "bash").stdout
	for line, want := range map[string]string{
		"holdfast ver":              "version",
		"holdfast jobs show -o j":   "json jsonl",
		"holdfast migrate ":         "up down status sql",
		"holdfast work --drain-":    "--drain-deadline",
		"holdfast jobs show --out=": "",
	} {
		const complete = `
			COMP_WORDS=($1); [[ $1 == *" " ]] && COMP_WORDS+=("")
			COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
			_holdfast; echo "${COMPREPLY[*]}"`
		bash := exec.CommandContext(t.Context(), "bash", "-c", script+complete, "bash", line)
		bash.Env = append(os.Environ(), "PATH="+directory+":"+os.Getenv("PATH"))
		out, err := bash.CombinedOutput()
		if err != nil || strings.Join(strings.Fields(string(out)), " ") != want {
			t.Errorf("%s: %v, %s, want %s", line, err, out, want)
		}
	}
}
