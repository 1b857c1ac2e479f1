package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// listedSettings runs `holdfast env` and returns its lines by setting.
func listedSettings(t *testing.T, args ...string) map[string]settingItem {
	t.Helper()
	got := execute(t, append([]string{"env", "-o", "json"}, args...)...)
	var document struct{ Items []settingItem }
	if err := json.Unmarshal([]byte(got.stdout), &document); err != nil || got.code != exitDone {
		t.Fatalf("%v: %+v", err, got)
	}
	listed := map[string]settingItem{}
	for _, item := range document.Items {
		listed[item.Setting] = item
	}
	return listed
}

func withoutDriverVariables(t *testing.T) {
	t.Helper()
	for _, name := range append([]string{"NO_COLOR"}, driverVariables...) {
		t.Setenv(name, "")
	}
}

func TestEnv_FlagWinsOverEnvironmentAndThatOverTheDefault(t *testing.T) {
	withoutDriverVariables(t)
	want := func(setting, value, source string, args ...string) {
		t.Helper()
		if got := listedSettings(t, args...)[setting]; got.Value != value || got.Source != source {
			t.Errorf("%s is %+v, want %q from %s", setting, got, value, source)
		}
	}
	want("--database-url", "", "default")
	want("--connect-timeout", "10s", "default")
	want("--connect-timeout", "1m0s", "flag", "--connect-timeout", "60s")
	want("--lease", "1m30s", "default")
	want("--output", "json", "flag")
	t.Setenv("DATABASE_URL", "postgres://app:secret@generic/shop")
	want("--database-url", "postgres://app:***@generic:5432/shop", "environment: DATABASE_URL")
	t.Setenv("HOLDFAST_DATABASE_URL", "postgres://app:secret@own/shop")
	want("--database-url", "postgres://app:***@own:5432/shop", "environment: HOLDFAST_DATABASE_URL")
	want("--database-url", "postgres://app:***@flag:5432/shop", "flag", "--database-url", "postgres://app:secret@flag/shop")
	want("--database-url", "postgres://app:***@own:5432/shop", "environment: HOLDFAST_DATABASE_URL", "--database-url", "")
	want("--database-url", "not valid", "flag", "--database-url", "postgres://app:se@cret@host/shop")
}

func TestEnv_TableIsForPeople(t *testing.T) {
	withoutDriverVariables(t)
	t.Setenv("HOLDFAST_DATABASE_URL", "postgres://app:secret@db/shop")
	t.Setenv("PGPASSWORD", "secret")
	t.Setenv("PGSSLMODE", "require")
	several := fmt.Sprint(len(listedSettings(t)["--database-url"].Commands), " commands")
	got := execute(t, "env")
	for _, line := range []string{
		"SETTING VALUE FROM DEFAULT VARIABLES READ BY",
		"--database-url postgres://app:***@db:5432/shop environment: HOLDFAST_DATABASE_URL - HOLDFAST_DATABASE_URL, DATABASE_URL " + several,
		"--concurrency 8 default 8 HOLDFAST_CONCURRENCY work, tune",
		"--concurrency 64 default 64 - bench",
		"PGPASSWORD *** environment: PGPASSWORD - PGPASSWORD all that ask the database",
		"PGSSLMODE require environment: PGSSLMODE - PGSSLMODE all that ask the database",
	} {
		if !slices.ContainsFunc(strings.Split(got.stdout, "\n"), func(printed string) bool { return strings.HasPrefix(oneLine(printed), line) }) {
			t.Errorf("there is no line %q in\n%s", line, got.stdout)
		}
	}
	if strings.Contains(got.stdout+got.stderr, "secret") || got.code != exitDone {
		t.Errorf("%+v", got)
	}
}

func TestEnv_EveryFlagOfEveryCommandIsListed(t *testing.T) {
	withoutDriverVariables(t)
	listed := listedSettings(t)
	eachCommand(testApp(), func(path []string, command *cli.Command) {
		for _, flag := range command.Flags {
			name := flag.Names()[0]
			if item, found := listed["--"+name]; !command.Hidden && (!found || item.Default != flagDefault(flag) && len(item.Commands) == 0) {
				t.Errorf("--%s of %s is listed as %+v", name, strings.Join(path, " "), item)
			}
		}
	})
}

// Whoever makes a command read a variable also makes `env` print it.
func TestEnv_EveryVariableThatTheProgramReadsIsKnown(t *testing.T) {
	known := []string{"NO_COLOR"}
	for _, names := range variables {
		known = append(known, names...)
	}
	for _, setting := range workSettings {
		known = append(known, setting.variable)
	}
	// What `work` gives to a program, and the demo's programs read.
	given := regexp.MustCompile(`^HOLDFAST_(JOB_ID|QUEUE|KIND|KEY|ATTEMPT|MAX_ATTEMPTS|FENCE|WORKER_ID)$`)
	literal := regexp.MustCompile(`"((?:HOLDFAST_|NO_)[A-Z_]+|DATABASE_URL)"`)
	for _, folder := range []string{".", "../../app", "../../app/demo", "../../app/bench"} {
		files, err := filepath.Glob(folder + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range literal.FindAllStringSubmatch(string(code), -1) {
				if !strings.HasSuffix(file, "_test.go") && !slices.Contains(known, match[1]) && !given.MatchString(match[1]) {
					t.Errorf("%s reads $%s, which is not in the table variables: `holdfast env` does not print it", file, match[1])
				}
			}
		}
	}
}
