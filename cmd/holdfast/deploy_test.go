package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/unit"
	"github.com/urfave/cli/v2"
	"go.yaml.in/yaml/v3"

	"github.com/holdfast-pg/holdfast/app"
)

// drainReserve is how much longer than its drain a worker is given to end.
const drainReserve = 10 * time.Second

// flagOf is the value of a flag in a command line.
func flagOf(words []string, flag string) string {
	if at := slices.Index(words, flag); at >= 0 && at+1 < len(words) {
		return words[at+1]
	}
	return ""
}

// wantDrain checks that what ends a worker waits for its drain.
func wantDrain(t *testing.T, where string, words []string, patience time.Duration) {
	t.Helper()
	deadline, err := time.ParseDuration(flagOf(words, "--drain-deadline"))
	if err != nil || patience != deadline+drainReserve {
		t.Errorf("%s: the worker is killed after %s, and its drain may take %s (%v)", where, patience, deadline, err)
	}
}

func TestDeploy_SystemdUnitRunsACommandThatExistsAndLetsItDrain(t *testing.T) {
	t.Parallel()
	file := "../../deploy/systemd/holdfast-worker@.service"
	text, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	options, err := unit.DeserializeOptions(text)
	if err := closeAfter(text, err); err != nil {
		t.Fatal(err)
	}
	value := map[string]string{}
	for _, option := range options {
		value[option.Name] = option.Value
	}
	words := strings.Fields(value["ExecStart"])
	if len(words) < 2 || filepath.Base(words[0]) != "holdfast" {
		t.Fatalf("ExecStart=%s", value["ExecStart"])
	}
	if problem := wrongCommand(testApp(), words[1:]); problem != "" {
		t.Errorf("ExecStart=%s: %s", value["ExecStart"], problem)
	}
	patience, err := time.ParseDuration(value["TimeoutStopSec"] + "s")
	if err != nil {
		t.Fatal(err)
	}
	wantDrain(t, file, words, patience)
	if value["KillMode"] != "mixed" || value["Type"] != "notify" || value["Restart"] != "on-failure" {
		t.Errorf("%v", value)
	}
}

func closeAfter(file io.Closer, err error) error {
	if err != nil {
		return err
	}
	return file.Close()
}

// manifest is what the tests read of a Kubernetes object.
type manifest struct {
	Kind string
	Spec struct {
		Template struct {
			Spec struct {
				TerminationGracePeriodSeconds int `yaml:"terminationGracePeriodSeconds"`
				Containers                    []container
			}
		}
	}
}

type container struct {
	Args  []string
	Ports []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	Env            []struct{ Name string }
	LivenessProbe  probe `yaml:"livenessProbe"`
	ReadinessProbe probe `yaml:"readinessProbe"`
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

func manifests(t *testing.T, file string) (found []manifest) {
	t.Helper()
	text, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	for decoder := yaml.NewDecoder(text); ; {
		var one manifest
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		found = append(found, one)
	}
}

func TestDeploy_KubernetesManifestsRunCommandsThatExist(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../deploy/kubernetes/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	run := 0
	for _, file := range files {
		for _, one := range manifests(t, file) {
			for _, each := range one.Spec.Template.Spec.Containers {
				run++
				if problem := wrongCommand(testApp(), each.Args); problem != "" {
					t.Errorf("%s: %v: %s", file, each.Args, problem)
				}
				if each.Env[0].Name != app.EnvDatabaseURL {
					t.Errorf("%s: the address of the database is in %s", file, each.Env[0].Name)
				}
			}
		}
	}
	if run != 2 {
		t.Errorf("%d containers in %v, want the migration's and the worker's", run, files)
	}
}

func TestDeploy_KubernetesWorkerIsProbedWhereItListensAndMayDrain(t *testing.T) {
	t.Parallel()
	file := "../../deploy/kubernetes/worker.yaml"
	pod := manifests(t, file)[0].Spec.Template.Spec
	worker := pod.Containers[0]
	wantDrain(t, file, worker.Args, time.Duration(pod.TerminationGracePeriodSeconds)*time.Second)
	if listens := flagOf(worker.Args, "--listen"); listens != fmt.Sprintf("0.0.0.0:%d", worker.Ports[0].ContainerPort) {
		t.Errorf("it listens on %s, and the port is %d", listens, worker.Ports[0].ContainerPort)
	}
	if live, ready := worker.LivenessProbe.HTTPGet, worker.ReadinessProbe.HTTPGet; live.Path != app.PathLive || ready.Path != app.PathReady ||
		live.Port != worker.Ports[0].Name || ready.Port != worker.Ports[0].Name {
		t.Errorf("probes %+v and %+v, port %s", live, ready, worker.Ports[0].Name)
	}
}

// A workflow that calls what is not there fails only after it was pushed.
func TestDeploy_WorkflowCallsTargetsOfTheMakefile(t *testing.T) {
	t.Parallel()
	workflow, makefile := readFile(t, "../../.github/workflows/ci.yml"), readFile(t, "../../Makefile")
	called := 0
	for line := range strings.Lines(workflow) {
		words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "- run: "))
		switch {
		case len(words) == 0 || !strings.Contains(line, "- run: "):
		case words[0] == "make":
			called++
			if !strings.Contains(makefile, "\n"+words[1]+":") {
				t.Errorf("there is no target %s", words[1])
			}
		default:
			if _, err := os.Stat("../../" + words[0]); err != nil {
				t.Error(err)
			}
		}
	}
	if called < 5 {
		t.Errorf("only %d targets are called", called)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// wrongCommand says what is wrong with a command line, "" if nothing is.
func wrongCommand(app *cli.App, words []string) string {
	known := app.Commands
	var command *cli.Command
	for len(words) > 0 && len(known) > 0 {
		if command = findCommand(known, words[0]); command == nil {
			return "there is no command " + words[0]
		}
		known, words = command.Subcommands, words[1:]
	}
	if command == nil || len(known) > 0 {
		return "no command is named"
	}
	for _, word := range words {
		name, isFlag := strings.CutPrefix(word, "--")
		if isFlag && !slices.ContainsFunc(command.Flags, func(flag cli.Flag) bool { return slices.Contains(flag.Names(), name) }) {
			return "it has no flag " + word
		}
	}
	return ""
}
