package app

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
)

// logged is what a logger of the settings writes to something that is no terminal.
func logged(t *testing.T, level, format string) string {
	t.Helper()
	var written bytes.Buffer
	log, err := NewLogger(&written, level, format)
	if err != nil {
		t.Fatal(err)
	}
	sayHello(log)
	return written.String()
}

func sayHello(log *slog.Logger) { log.Info("hello", "queue", "reports") }

func TestNewLogger_WritesJSONWhereNoTerminalIs(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"auto", "json"} {
		var line struct{ Level, Msg, Queue string }
		if err := json.Unmarshal([]byte(logged(t, "info", format)), &line); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		if line.Level != "INFO" || line.Msg != "hello" || line.Queue != "reports" {
			t.Errorf("%s: %+v", format, line)
		}
	}
}

func TestNewLogger_TextHasNoColourWhereNoTerminalIs(t *testing.T) {
	t.Parallel()
	text := logged(t, "info", "text")
	if !strings.Contains(text, "INF hello queue=reports") || strings.Contains(text, "\x1b") {
		t.Errorf("got %q", text)
	}
}

func TestNewLogger_KeepsTheLevel(t *testing.T) {
	t.Parallel()
	for level, wanted := range map[string]bool{"debug": true, "info": true, "INFO": true, "warn": false, "error": false} {
		for _, format := range []string{"text", "json"} {
			if got := logged(t, level, format) != ""; got != wanted {
				t.Errorf("%s as %s: an info line is written: %v", level, format, got)
			}
		}
	}
}

func TestNewLogger_RefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ level, format, words string }{
		{"loud", "json", `log level "loud" is none of debug, info, warn, error`},
		{"", "json", `log level "" is none of debug, info, warn, error`},
		{"info", "xml", `log format "xml" is none of auto, text, json`},
		{"info", "", `log format "" is none of auto, text, json`},
	} {
		if _, err := NewLogger(&bytes.Buffer{}, test.level, test.format); err == nil || err.Error() != test.words {
			t.Errorf("level %q format %q: %v", test.level, test.format, err)
		}
	}
}
