package judge

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

// What is not whole, or not understood, is not judged: an error, whatever else it holds.
func TestJudge_RunThatIsNotWholeIsAnError(t *testing.T) {
	t.Parallel()
	client := history.ClientFile("client")
	for name, test := range map[string]struct {
		spoil func(dir string) error
		cut   bool // It is ErrCutShort.
	}{
		"no manifest":                   {func(dir string) error { return os.Remove(filepath.Join(dir, history.ManifestFile)) }, true},
		"no sink":                       {func(dir string) error { return os.Remove(filepath.Join(dir, history.SinkFile)) }, true},
		"log cut in a line":             {truncate(history.WALFile), true},
		"client cut in a line":          {truncate(client), true},
		"half a line in the log":        {appendTo(history.WALFile, `{"lsn":"0/FFF`), true},
		"half a line in the final rows": {appendTo(history.FinalFile, `{`), true},
		"client that is not listed":     {appendTo(history.ClientFile("stranger"), "{}\n"), true},
		"no JSON in the log":            {replace(history.WALFile, `{"lsn"`, `"lsn"`), false},
		"no JSON in a client":           {replace(client, `{"op"`, `["op"`), false},
		"unknown field":                 {replace(history.WALFile, `"xid"`, `"xids"`), false},
		"unknown operation":             {replace(client, `"op":"claim"`, `"op":"grab"`), false},
		"unknown outcome":               {replace(client, `"outcome":"ok"`, `"outcome":"fine"`), false},
		"unknown verdict":               {replace(client, `"verdict":"complete"`, `"verdict":"done"`), false},
		"unknown change":                {replace(history.WALFile, `"what":"insert"`, `"what":"upsert"`), false},
		"unknown table":                 {replace(history.WALFile, `"table":"inbox"`, `"table":"outbox"`), false},
		"unknown status":                {replace(history.WALFile, `"status":"processing"`, `"status":"busy"`), false},
		"no job id":                     {replace(history.WALFile, `"id":"0`, `"id":"x`), false},
		"log out of order":              {replace(history.WALFile, `"lsn":"0/3"`, `"lsn":"0/1"`), true},
		"two records in a line":         {replace(client, "}\n{", "}{"), true},
		"record and a half":             {replace(client, "}\n", "}{}\n"), false},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			dir := whole(t).write()
			if err := test.spoil(dir); err != nil {
				t.Fatal(err)
			}
			report, err := Run(t.Context(), dir)
			if err == nil || report.Verdict == Green || errors.Is(err, history.ErrCutShort) != test.cut {
				t.Errorf("the verdict is %q, error %v", report.Verdict, err)
			}
		})
	}
}

func TestJudge_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, whole(t).write()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

// A run in which nothing happened shows nothing.
func TestJudge_EmptyRunIsInvalid(t *testing.T) {
	t.Parallel()
	if report := newStory(t).judge(); report.Verdict != Invalid {
		t.Errorf("the verdict is %s, want %s", report.Verdict, Invalid)
	}
}

func TestReport_SaysWhatWasSeenAndWhere(t *testing.T) {
	t.Parallel()
	s := whole(t)
	s.run.Skipped = []history.Skipped{{Fault: "full disk", Reason: "no mount"}}
	s.enqueue().claim("w").execute("complete").end("complete").tellSettle("complete", history.Stale)
	report := s.judge()
	var printed strings.Builder
	if err := report.Write(&printed); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(printed.String()), " ")
	for _, want := range []string{
		"VIOLATED: seed 1", "broke Fenced: Only the current claim can renew or settle a job", "to complete it was refused; by the log the claim is completed",
		"client-client.jsonl, line", "nothing is shown about it: full disk (no mount)", "Kept 0",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not say %q:\n%s", want, printed.String())
		}
	}
	encoded, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	var decoded Report
	if err := json.Unmarshal(encoded, &decoded); err != nil || decoded.Violations[0] != report.Violations[0] {
		t.Errorf("read back: %+v, error %v", decoded, err)
	}
}

func truncate(name string) func(dir string) error {
	return func(dir string) error {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		return os.Truncate(path, info.Size()-10)
	}
}

func appendTo(name, text string) func(dir string) error {
	return func(dir string) error {
		file, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer file.Close()
		_, err = file.WriteString(text)
		return err
	}
}

// replace changes the first place where a text stands.
func replace(name, old, text string) func(dir string) error {
	return func(dir string) error {
		path := filepath.Join(dir, name)
		before, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		after := strings.Replace(string(before), old, text, 1)
		if after == string(before) {
			return errors.New(old + " is not in " + name)
		}
		return os.WriteFile(path, []byte(after), 0o600)
	}
}
