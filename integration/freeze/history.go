package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// lastOf returns the last commit whose programs were built for a schema version: the one
// before the next migration came, on the main line if it shows that version. While the next
// migration is not committed yet, that is the commit the work began on.
func lastOf(ctx context.Context, root string, version int) (string, error) {
	next, err := migrationFile(root, version+1)
	if err != nil {
		return "", err
	}
	if current, err := versionAt(ctx, root, "HEAD"); err == nil && current == version {
		return git(ctx, root, "rev-parse", "HEAD")
	}
	for _, line := range [][]string{{"--first-parent", "--diff-merges=first-parent"}, {"--topo-order"}} {
		arguments := append([]string{"log", "--no-patch", "--diff-filter=A", "--format=%H"}, line...)
		added, err := git(ctx, root, append(arguments, "--", next)...)
		if err != nil {
			return "", err
		}
		for commit := range strings.FieldsSeq(added) {
			if before, err := versionAt(ctx, root, commit+"^"); err == nil && before == version {
				return git(ctx, root, "rev-parse", commit+"^")
			}
		}
	}
	return "", fmt.Errorf("no commit before %s stands at that version; is the history here (git fetch --unshallow)?", next)
}

var number = regexp.MustCompile(`db/migrations/0*(\d+)_\w+\.sql`)

// versionAt returns the number of the newest migration at a commit.
func versionAt(ctx context.Context, root, commit string) (int, error) {
	listed, err := git(ctx, root, "ls-tree", "--name-only", commit, "db/migrations/")
	if err != nil {
		return 0, err
	}
	newest := 0
	for _, match := range number.FindAllStringSubmatch(listed, -1) {
		version, _ := strconv.Atoi(match[1])
		newest = max(newest, version)
	}
	return newest, nil
}

// migrationFile returns the path of a migration of the working tree, from the root.
func migrationFile(root string, version int) (string, error) {
	files, err := filepath.Glob(filepath.Join(root, "db/migrations", fmt.Sprintf("%05d_*.sql", version)))
	if err != nil || len(files) != 1 {
		return "", errors.Join(err, fmt.Errorf("db/migrations has %d files of version %d", len(files), version))
	}
	return filepath.Rel(root, files[0])
}

var oldestBinary = regexp.MustCompile(`SET schema_version = (\d+), oldest_binary = (\d+);`)

// promised reads from the newest migration its number, and that of the oldest programs that
// may run on the schema it makes.
func promised(root string) (newest, oldest int, err error) {
	files, err := filepath.Glob(filepath.Join(root, "db/migrations", "*.sql"))
	if err != nil || len(files) == 0 {
		return 0, 0, errors.Join(err, errors.New("db/migrations has no files"))
	}
	last := files[len(files)-1]
	text, err := os.ReadFile(last)
	if err != nil {
		return 0, 0, err
	}
	match := oldestBinary.FindSubmatch(text)
	if match == nil {
		return 0, 0, fmt.Errorf("%s sets no schema_version and oldest_binary", last)
	}
	newest, _ = strconv.Atoi(string(match[1]))
	oldest, _ = strconv.Atoi(string(match[2]))
	return newest, oldest, nil
}

// generatedCode returns the files of gen/ at a commit.
func generatedCode(ctx context.Context, root, commit string) ([]string, error) {
	listed, err := git(ctx, root, "ls-tree", "--name-only", commit, "gen/")
	if err != nil {
		return nil, err
	}
	var sources []string
	for name := range strings.FieldsSeq(listed) {
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		source, err := git(ctx, root, "show", commit+":"+name)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source)
	}
	return sources, nil
}

// git runs a command that only reads, and returns what it prints.
func git(ctx context.Context, root string, arguments ...string) (string, error) {
	var said strings.Builder
	command := exec.CommandContext(ctx, "git", arguments...)
	command.Dir, command.Stderr = root, &said
	printed, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(said.String()))
	}
	return strings.TrimSpace(string(printed)), nil
}
