package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// oldest is the first major version that Holdfast supports.
const oldest = 14

// host is where binaries and ports come from. Tests take parts of it away.
type host struct {
	folders []string // Patterns of the folders where distributions put servers.
	caches  []string // Folders that may keep a download, best first.
	fetch   func(version embeddedpostgres.PostgresVersion, dir string) error
	port    func() (int, error)
}

func thisHost() host {
	h := host{caches: cacheFolders(), fetch: fetch, port: freePort}
	switch runtime.GOOS {
	case "darwin":
		h.folders = []string{
			"/opt/homebrew/opt/postgresql@*/bin",
			"/usr/local/opt/postgresql@*/bin",
			"/Applications/Postgres.app/Contents/Versions/*/bin",
		}
	default:
		h.folders = []string{
			"/usr/lib/postgresql/*/bin", // Debian, Ubuntu
			"/usr/pgsql-*/bin",          // packages of the PostgreSQL project for Red Hat
			"/usr/lib/postgresql*/bin",  // SUSE
			"/usr/libexec/postgresql*",  // Alpine
		}
	}
	return h
}

// binaries is a folder that holds initdb and postgres, both of the same version.
type binaries struct {
	dir     string
	version string // "15.14"
	source  string // "PATH"
}

// place is a folder to look at, or why there is none.
type place struct {
	name string
	dir  string
	none string
}

func (p place) String() string {
	if p.none != "" || p.dir == p.name {
		return p.name
	}
	return fmt.Sprintf("%s (%s)", p.name, p.dir)
}

// find returns the first binaries of the machine that fit, else the download.
func (h host) find(ctx context.Context, o Options, who account) (binaries, error) {
	wanted, err := parseMajor(o.Version)
	if err != nil {
		return binaries{}, err
	}
	missing := &NotFoundError{Version: o.Version}
	for p := range h.places(ctx) {
		why := p.none
		if why == "" {
			var b binaries
			if b, why = probe(ctx, p, wanted, who); why == "" {
				return b, nil
			}
		}
		missing.Looked = append(missing.Looked, p.String()+": "+why)
	}
	b, err := h.download(ctx, cmp.Or(wanted, newestDownload), o.Progress, who)
	if ctx.Err() != nil {
		return binaries{}, context.Cause(ctx)
	}
	if err != nil {
		missing.Err = err
		return binaries{}, missing
	}
	return b, nil
}

// parseMajor returns 0 for "any".
func parseMajor(version string) (int, error) {
	if version == "" {
		return 0, nil
	}
	major, err := strconv.Atoi(version)
	if err != nil || major < oldest {
		return 0, fmt.Errorf("version %q: want a major version from %d on, such as %q", version, oldest, strconv.Itoa(newestDownload))
	}
	return major, nil
}

// places yields the folders to look at: PATH, pg_config, then the distributions' folders with the newest
// of each first.
func (h host) places(ctx context.Context) iter.Seq[place] {
	return func(yield func(place) bool) {
		if !yield(pathPlace()) || !yield(configPlace(ctx)) {
			return
		}
		for _, pattern := range h.folders {
			dirs, _ := filepath.Glob(pattern) // The only error is a malformed pattern.
			slices.SortStableFunc(dirs, func(a, b string) int { return cmp.Compare(folderVersion(b), folderVersion(a)) })
			if len(dirs) == 0 && !yield(place{name: pattern, none: "no such folder"}) {
				return
			}
			for _, dir := range dirs {
				if !yield(place{name: dir, dir: dir}) {
					return
				}
			}
		}
	}
}

// pathPlace follows the link, because the folder of the link need not hold initdb.
func pathPlace() place {
	p := place{name: "PATH"}
	file, err := exec.LookPath("postgres")
	if err == nil {
		file, err = filepath.EvalSymlinks(file)
	}
	if err != nil {
		p.none = "no postgres"
	}
	p.dir = filepath.Dir(file)
	return p
}

func configPlace(ctx context.Context) place {
	p := place{name: "pg_config"}
	out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		p.none = "no such program"
	case err != nil:
		p.none = "pg_config --bindir: " + err.Error()
	}
	p.dir = strings.TrimSpace(string(out))
	return p
}

var digits = regexp.MustCompile(`\d+`)

// folderVersion is the last number in a folder's path, 0 for none: 15 for /usr/lib/postgresql/15/bin.
func folderVersion(dir string) int {
	numbers := digits.FindAllString(dir, -1)
	if len(numbers) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(numbers[len(numbers)-1])
	return n
}

func holdsServer(dir string) bool {
	for _, program := range []string{"initdb", "postgres"} {
		info, err := os.Stat(filepath.Join(dir, program))
		if err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}

var versionLine = regexp.MustCompile(`\(PostgreSQL\) ((\d+)\S*)`)

// probe asks the folder's postgres for its version, as the account that would run it: a folder that the
// account cannot enter does not count. It returns why the folder does not fit, or "".
func probe(ctx context.Context, p place, wanted int, who account) (b binaries, why string) {
	if !holdsServer(p.dir) {
		return b, "lacks initdb or postgres"
	}
	var complaint strings.Builder
	cmd := serverCommand(exec.CommandContext(ctx, filepath.Join(p.dir, "postgres"), "--version"), who)
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return b, strings.TrimSpace(fmt.Sprintf("postgres --version: %v %s", err, complaint.String()))
	}
	match := versionLine.FindStringSubmatch(string(out))
	if match == nil {
		return b, fmt.Sprintf("postgres --version prints %q", out)
	}
	major, _ := strconv.Atoi(match[2])
	if major < oldest || (wanted != 0 && major != wanted) {
		return b, "has version " + match[1]
	}
	return binaries{dir: p.dir, version: match[1], source: p.name}, ""
}

// cacheFolders are the places for downloads: the user's cache, else a folder below the temporary
// directory, as when HOME is not set. Root's own home is closed to the account that runs the server, so
// root uses the system's cache.
func cacheFolders() []string {
	var folders []string
	if os.Geteuid() != 0 {
		if dir, err := os.UserCacheDir(); err == nil {
			folders = append(folders, filepath.Join(dir, "holdfast"))
		}
	} else if runtime.GOOS == "darwin" {
		folders = append(folders, "/Library/Caches/holdfast")
	} else {
		folders = append(folders, "/var/cache/holdfast")
	}
	return append(folders, filepath.Join(os.TempDir(), fmt.Sprintf("holdfast-%d", os.Geteuid())))
}
