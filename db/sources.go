package db

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Sources lists the embedded migrations in order, without asking a database.
func Sources() ([]Migration, error) {
	entries, err := fs.ReadDir(migrations, "migrations")
	if err != nil {
		return nil, fmt.Errorf("list the embedded migrations: %w", err)
	}
	sources := make([]Migration, len(entries))
	for i, entry := range entries {
		number, _, _ := strings.Cut(entry.Name(), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("migration %s has no number: %w", entry.Name(), err)
		}
		sources[i] = Migration{Version: version, Name: sourceName(entry.Name())}
	}
	return sources, nil
}

// SQL returns the statements of the embedded migrations in one direction, for people who
// run them with a tool of their own: up in order, down in reverse.
func SQL(down bool) (string, error) {
	sources, err := Sources()
	if err != nil {
		return "", err
	}
	var script strings.Builder
	for i := range sources {
		source := sources[i]
		if down {
			source = sources[len(sources)-1-i]
		}
		file, err := fs.ReadFile(migrations, "migrations/"+source.Name+".sql")
		if err != nil {
			return "", fmt.Errorf("read migration %s: %w", source.Name, err)
		}
		up, undo, _ := strings.Cut(string(file), "-- +goose Down\n")
		if down {
			up = undo
		}
		fmt.Fprintf(&script, "-- %s\n%s\n", source.Name, strings.TrimSpace(withoutAnnotations(up)))
	}
	return script.String(), nil
}

func withoutAnnotations(script string) string {
	var kept strings.Builder
	for line := range strings.Lines(script) {
		if !strings.HasPrefix(line, "-- +goose") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

func sourceName(file string) string {
	return strings.TrimSuffix(path.Base(file), ".sql")
}
