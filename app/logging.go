package app

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"
	"github.com/mattn/go-isatty"
)

// IsTerminal tells whether what is written to w is read on a terminal.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}

// NewLogger returns a logger of a level (debug, info, warn, error) in a format: text for
// people, in colour on a terminal unless NO_COLOR is set; json for machines; auto is text
// on a terminal and json elsewhere.
func NewLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var parsed slog.Level
	if err := parsed.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log level %q is none of debug, info, warn, error", level)
	}
	switch {
	case format == "text" || format == "auto" && IsTerminal(w):
		return slog.New(tint.NewTextHandler(w, &tint.Options{
			Level:      parsed,
			TimeFormat: time.TimeOnly,
			NoColor:    !IsTerminal(w) || os.Getenv("NO_COLOR") != "",
		})), nil
	case format == "json" || format == "auto":
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: parsed})), nil
	default:
		return nil, fmt.Errorf("log format %q is none of auto, text, json", format)
	}
}
