package history_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

// record writes a complete run with two effects and one operation, and returns its folder.
func record(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, records := range map[string][]any{
		history.WALFile:                {},
		history.FaultsFile:             {},
		history.FinalFile:              {},
		history.SinkFile:               {history.Effect{Resource: "a", Token: 1, Accepted: true}, history.Effect{Resource: "b", Token: 2}},
		history.ClientFile("worker-1"): {history.Op{Op: history.OpClaim, Job: "j"}},
	} {
		file, err := history.Create(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, record := range records {
			if err := file.Write(record); err != nil {
				t.Fatal(err)
			}
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := history.Finish(dir, history.Run{Seed: 7}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func read[T any](t *testing.T, dir, name string) (records []T) {
	t.Helper()
	for record, err := range history.Read[T](dir, name) {
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, record)
	}
	return records
}

func TestRun_IsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	dir := record(t)
	run, err := history.Open(dir)
	if err != nil || run.Seed != 7 || run.Lines[history.SinkFile] != 2 {
		t.Errorf("the manifest is %+v, error %v", run, err)
	}
	effects := read[history.Effect](t, dir, history.SinkFile)
	if want := []history.Effect{{Resource: "a", Token: 1, Accepted: true}, {Resource: "b", Token: 2}}; !slices.Equal(effects, want) {
		t.Errorf("the effects are %+v, want %+v", effects, want)
	}
	clients, err := history.Clients(dir)
	if err != nil || !slices.Equal(clients, []string{"client-worker-1.jsonl"}) {
		t.Errorf("the clients are %v, error %v", clients, err)
	}
}

func TestRun_CutShortCannotBeJudged(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(dir string) error{
		"no manifest":    func(dir string) error { return os.Remove(filepath.Join(dir, history.ManifestFile)) },
		"half manifest":  func(dir string) error { return os.Truncate(filepath.Join(dir, history.ManifestFile), 20) },
		"no server log":  func(dir string) error { return os.Remove(filepath.Join(dir, history.WALFile)) },
		"half sink":      func(dir string) error { return os.Truncate(filepath.Join(dir, history.SinkFile), 70) },
		"no client":      func(dir string) error { return os.Remove(filepath.Join(dir, history.ClientFile("worker-1"))) },
		"no such folder": os.RemoveAll,
		"half a line":    func(dir string) error { return appendTo(dir, history.WALFile, `{"lsn`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := record(t)
			if err := cut(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := history.Open(dir); !errors.Is(err, history.ErrCutShort) {
				t.Errorf("error %v, want %v", err, history.ErrCutShort)
			}
		})
	}
}

// What a killed process was just writing is no record.
func TestRead_LeavesOutHalfALine(t *testing.T) {
	t.Parallel()
	dir := record(t)
	if err := appendTo(dir, history.ClientFile("worker-1"), `{"op":"se`); err != nil {
		t.Fatal(err)
	}
	if ops := read[history.Op](t, dir, history.ClientFile("worker-1")); len(ops) != 1 {
		t.Errorf("%d records, want 1", len(ops))
	}
	if _, err := history.Open(dir); err != nil {
		t.Error(err)
	}
}

// A field that nobody here knows may say that the record means something else.
func TestRead_UnknownFieldIsAnError(t *testing.T) {
	t.Parallel()
	for _, line := range []string{`{"op":"claim","colour":"red"}`, `{"op":"claim"}{"op":"claim"}`, `claim`, ``} {
		dir := record(t)
		if err := appendTo(dir, history.ClientFile("worker-1"), line+"\n"); err != nil {
			t.Fatal(err)
		}
		var last error
		for _, err := range history.Read[history.Op](dir, history.ClientFile("worker-1")) {
			last = err
		}
		if last == nil || !strings.Contains(last.Error(), "client-worker-1.jsonl, line 2") {
			t.Errorf("%q: error %v", line, last)
		}
	}
}

func appendTo(dir, name, text string) error {
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteString(text)
	return err
}
