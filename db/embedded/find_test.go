//go:build unix && !aix && !solaris

package embedded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

var errNoNetwork = errors.New("no network")

// bareHost has no servers but those in the given folders, and cannot download.
func bareHost(t *testing.T, folders ...string) host {
	t.Helper()
	t.Setenv("PATH", t.TempDir())
	return host{
		folders: folders,
		caches:  []string{filepath.Join(openDir(t), "cache")},
		fetch:   func(embeddedpostgres.PostgresVersion, string) error { return errNoNetwork },
		port:    freePort,
	}
}

// install makes a folder of programs that can do no more than print their version.
func install(t *testing.T, dir, version string, programs ...string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\necho 'postgres (PostgreSQL) %s'\n", version)
	for _, name := range programs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func find(t *testing.T, h host, version string) binaries {
	t.Helper()
	who, err := serverAccount()
	if err != nil {
		t.Fatal(err)
	}
	b, err := h.find(t.Context(), Options{Version: version, Progress: io.Discard}, who)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFind_NewestFolderFirstAndOnlyTheWantedVersion(t *testing.T) {
	root := openDir(t)
	h := bareHost(t, filepath.Join(root, "*", "bin"))
	install(t, filepath.Join(root, "9", "bin"), "9.6.24", "initdb", "postgres")
	install(t, filepath.Join(root, "15", "bin"), "15.14 (Debian 15.14-0)", "initdb", "postgres")
	install(t, filepath.Join(root, "16", "bin"), "16.9", "initdb", "postgres")
	install(t, filepath.Join(root, "17", "bin"), "17.5", "postgres") // A server without initdb.

	for wanted, want := range map[string]string{"": "16.9", "15": "15.14"} {
		b := find(t, h, wanted)
		if b.version != want || b.source != b.dir {
			t.Errorf("version %q: found %s from %s, want %s", wanted, b.version, b.source, want)
		}
	}
}

func TestFind_FollowsTheLinkOnPathThenAsksPgConfig(t *testing.T) {
	root := openDir(t)
	h := bareHost(t)
	linked, configured, links := filepath.Join(root, "a"), filepath.Join(root, "b"), filepath.Join(root, "links")
	install(t, linked, "15.14", "initdb", "postgres")
	install(t, configured, "17beta1", "initdb", "postgres")
	install(t, links, "")
	if err := os.Symlink(filepath.Join(linked, "postgres"), filepath.Join(links, "postgres")); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\necho '%s'\n", configured)
	if err := os.WriteFile(filepath.Join(links, "pg_config"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", links)

	if b := find(t, h, ""); b.source != "PATH" || b.dir != linked || b.version != "15.14" {
		t.Errorf("any version: found %+v, want that of PATH", b)
	}
	if b := find(t, h, "17"); b.source != "pg_config" || b.dir != configured || b.version != "17beta1" {
		t.Errorf("version 17: found %+v, want that of pg_config", b)
	}
}

func TestFind_NothingToRunNamesThePlacesAndTheWayOut(t *testing.T) {
	root := openDir(t)
	h := bareHost(t, filepath.Join(root, "*", "bin"), "/nowhere/*/bin")
	install(t, filepath.Join(root, "15", "bin"), "15.14", "initdb", "postgres")
	_, err := h.start(t.Context(), Options{Version: "16"})

	var missing *NotFoundError
	if !errors.As(err, &missing) || !errors.Is(err, errNoNetwork) {
		t.Fatalf("%v, want a NotFoundError that wraps %v", err, errNoNetwork)
	}
	t.Log(err)
	for _, want := range []string{
		"no PostgreSQL 16 server", "PATH: no postgres", "pg_config: no such program",
		"15.14", "/nowhere/*/bin: no such folder", "download 16.", "no network", "install", "--database-url",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not mention %q", want)
		}
	}
}

func TestFind_RefusesVersionsItDoesNotSupport(t *testing.T) {
	h := bareHost(t)
	for version, want := range map[string]string{
		"13":   "want a major version from 14 on",
		"18.3": "want a major version from 14 on",
		"99":   "there is no download of PostgreSQL 99, only of 14 to 18",
	} {
		if _, err := h.start(t.Context(), Options{Version: version}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("version %s: %v, want %q", version, err, want)
		}
	}
}
