package app

import (
	"errors"
	"strings"
	"testing"
)

func TestDatabaseURL_FlagGoesBeforeOurVariableGoesBeforeTheGenericOne(t *testing.T) {
	// Not parallel: it sets the environment.
	for _, test := range []struct{ name, flag, ours, generic, want string }{
		{"all three", "flag", "ours", "generic", "flag"},
		{"flag alone", "flag", "", "", "flag"},
		{"both variables", "", "ours", "generic", "ours"},
		{"our variable", "", "ours", "", "ours"},
		{"generic variable", "", "", "generic", "generic"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv(EnvDatabaseURL, test.ours)
			t.Setenv(EnvGenericDatabaseURL, test.generic)
			if got, err := DatabaseURL(test.flag); err != nil || got != test.want {
				t.Errorf("got %q %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestDatabaseURL_NothingIsGuessed(t *testing.T) {
	// Not parallel: it sets the environment.
	t.Setenv(EnvDatabaseURL, "")
	t.Setenv(EnvGenericDatabaseURL, "")
	url, err := DatabaseURL("")
	if url != "" || !errors.Is(err, ErrNoDatabase) {
		t.Fatalf("got %q %v", url, err)
	}
	for _, way := range []string{"--database-url", EnvDatabaseURL, EnvGenericDatabaseURL} {
		if !strings.Contains(err.Error(), way) {
			t.Errorf("%q does not name %s", err, way)
		}
	}
}
