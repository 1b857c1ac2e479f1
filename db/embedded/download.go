package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// downloads are the versions to be had, by major version. The library knows the newest minor of each.
var downloads = map[int]embeddedpostgres.PostgresVersion{
	14: embeddedpostgres.V14,
	15: embeddedpostgres.V15,
	16: embeddedpostgres.V16,
	17: embeddedpostgres.V17,
	18: embeddedpostgres.V18,
}

const newestDownload = 18

// download returns the binaries kept in the cache, after fetching them if need be. Of several processes
// that need the same version one fetches it and the others wait.
func (h host) download(ctx context.Context, major int, progress io.Writer, who account) (binaries, error) {
	version, ok := downloads[major]
	if !ok {
		return binaries{}, fmt.Errorf("there is no download of PostgreSQL %d, only of %d to %d", major, oldest, newestDownload)
	}
	cache, err := cacheFolder(h.caches)
	if err != nil {
		return binaries{}, fmt.Errorf("download %s: %w", version, err)
	}
	// A home directory may be shared by machines of different kinds.
	dir := filepath.Join(cache, fmt.Sprintf("%s-%s-%s", version, runtime.GOOS, runtime.GOARCH))
	bin := filepath.Join(dir, "bin")
	if !holdsServer(bin) {
		if err := h.fill(ctx, version, dir, progress); err != nil {
			return binaries{}, fmt.Errorf("download %s: %w", version, err)
		}
	}
	b, why := probe(ctx, place{name: fmt.Sprintf("downloaded %s", version), dir: bin}, major, who)
	if why != "" {
		return binaries{}, fmt.Errorf("the download does not run here (remove %s to fetch it again): %s", dir, why)
	}
	return b, nil
}

// cacheFolder makes the first of the folders that can be made. A folder that somebody else can write to
// does not count: what lies in it is going to be run. All may read it, as the server's account must.
func cacheFolder(folders []string) (string, error) {
	var errs []error
	for _, base := range folders {
		dir := filepath.Join(base, "postgres")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			errs = append(errs, err)
			continue
		}
		info, err := os.Lstat(base)
		if err == nil && !onlyOurs(info) {
			err = fmt.Errorf("%s belongs to or can be written by another user", base)
		}
		if err == nil {
			err = errors.Join(os.Chmod(base, 0o755), os.Chmod(dir, 0o755))
		}
		if err == nil {
			return dir, nil
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("find a folder to keep it in: %w", errors.Join(errs...))
}

// fill fetches a version into dir. The library cannot be cancelled, so a goroutine does the work: when
// ctx ends, fill returns and the goroutine still finishes the fetch for the next caller, or the process
// ends and the next caller starts afresh.
func (h host) fill(ctx context.Context, version embeddedpostgres.PostgresVersion, dir string, progress io.Writer) error {
	lock, err := waitForLock(ctx, dir+".lock", progress)
	if err != nil {
		return err
	}
	if holdsServer(filepath.Join(dir, "bin")) {
		return lock.Close() // Another process was first.
	}
	done := make(chan error, 1)
	go func() {
		done <- errors.Join(h.fetchInto(version, dir), lock.Close())
	}()
	return showDownload(ctx, progress, version, done)
}

func waitForLock(ctx context.Context, name string, progress io.Writer) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	retry := time.NewTicker(100 * time.Millisecond)
	defer retry.Stop()
	for first := true; ; first = false {
		locked, err := tryLock(file)
		if locked {
			return file, nil
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), file.Close())
		}
		if first {
			fmt.Fprintln(progress, "waiting for another process to download PostgreSQL")
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), file.Close())
		case <-retry.C:
		}
	}
}

// fetchInto fetches into a folder beside dir and renames it at the end, so that dir is complete or absent.
// The caller holds the lock.
func (h host) fetchInto(version embeddedpostgres.PostgresVersion, dir string) (err error) {
	part := dir + ".part"
	if err := os.RemoveAll(part); err != nil { // Left by a process that was killed.
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(part)) }()
	if err := os.Mkdir(part, 0o755); err != nil {
		return err
	}
	if err := h.fetch(version, part); err != nil {
		return err
	}
	server := filepath.Join(part, "server")
	if err := openToAll(server); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil { // Incomplete, or we would not be here.
		return err
	}
	return os.Rename(server, dir)
}

// fetch lets the library download a version and unpack it into dir/server.
//
// The library offers one door, Start, which downloads, unpacks, makes the runtime directory, empties the
// data directory, and runs initdb and the server: as the current user, so not for root, and with nobody
// to stop the server after a SIGKILL. Only the first half is wanted. The door is shut behind it by a data
// directory that ends in "/.", which os.RemoveAll refuses ("the rmdir system call does not permit
// removing '.'"), so that Start returns before it runs any program. The runtime directory exists exactly
// when unpacking has succeeded, and it tells that expected error from a real one.
//
// Port 0 passes the library's check that its port is free. The library leaves one empty file
// embedded_postgres_log* in the temporary directory, whose name it keeps to itself.
func fetch(version embeddedpostgres.PostgresVersion, dir string) error {
	unpacked := filepath.Join(dir, "unpacked")
	library := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(version).
		Port(0).
		CachePath(filepath.Join(dir, "archive")).
		BinariesPath(filepath.Join(dir, "server")).
		RuntimePath(unpacked).
		DataPath(dir + "/.").
		Logger(io.Discard))
	err := library.Start()
	if err == nil {
		return errors.Join(errors.New("the library started a server of its own"), library.Stop())
	}
	if _, missing := os.Stat(unpacked); missing != nil {
		return err
	}
	return nil
}

// openToAll lets every user read and run what lies in dir, whatever the umask was.
func openToAll(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		more := fs.FileMode(0o444)
		if info.IsDir() || info.Mode()&0o100 != 0 {
			more = 0o555
		}
		return root.Chmod(name, info.Mode().Perm()|more)
	})
}
