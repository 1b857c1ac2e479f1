// Freeze writes the statements that programs of an earlier schema version send into
// integration/testdata/statements, taken from git. Tests run them on the newest schema: see
// docs/schema-evolution.md. `make freeze` runs it after a migration was added.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// folder is where the files are, from the root of the module.
const folder = "integration/testdata/statements"

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "freeze:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("freeze", flag.ContinueOnError)
	version := flags.Int("version", 0, "the schema version to freeze; all that are needed and missing without it")
	switch err := flags.Parse(arguments); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	root, err := git(ctx, ".", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	if *version > 0 {
		return freeze(ctx, root, *version, out)
	}
	needed, spare, err := due(root)
	if err != nil {
		return err
	}
	for _, version := range needed {
		if err := freeze(ctx, root, version, out); err != nil {
			return err
		}
	}
	for _, version := range spare {
		if err := os.Remove(path(root, version)); err != nil {
			return err
		}
		fmt.Fprintf(out, "removed the statements of version %d: its programs may not run on the newest schema\n", version)
	}
	return nil
}

// due tells which files are missing, and which are no longer needed: a file is needed for each
// version whose programs may still run on the newest schema, but for the newest itself.
func due(root string) (needed, spare []int, err error) {
	newest, oldest, err := promised(root)
	if err != nil {
		return nil, nil, err
	}
	for version := oldest; version < newest; version++ {
		if _, err := os.Stat(path(root, version)); errors.Is(err, os.ErrNotExist) {
			needed = append(needed, version)
		}
	}
	files, err := filepath.Glob(filepath.Join(root, folder, "*.json"))
	if err != nil {
		return nil, nil, err
	}
	for _, file := range files {
		name := filepath.Base(file)
		if version, err := strconv.Atoi(name[:len(name)-len(".json")]); err == nil && (version < oldest || version >= newest) {
			spare = append(spare, version)
		}
	}
	slices.Sort(spare)
	return needed, spare, nil
}

// freeze writes the file of one version.
func freeze(ctx context.Context, root string, version int, out io.Writer) error {
	commit, err := lastOf(ctx, root, version)
	if err != nil {
		return fmt.Errorf("find the programs of version %d: %w", version, err)
	}
	sources, err := generatedCode(ctx, root, commit)
	if err != nil {
		return fmt.Errorf("read gen/ of version %d: %w", version, err)
	}
	statements, err := readStatements(sources)
	if err != nil {
		return fmt.Errorf("understand gen/ of version %d: %w", version, err)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(frozen{Schema: version, Statements: statements}); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path(root, version), text.Bytes(), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(out, "froze the %d statements of version %d, as of commit %.7s\n", len(statements), version, commit)
	return nil
}

func path(root string, version int) string {
	return filepath.Join(root, folder, strconv.Itoa(version)+".json")
}
