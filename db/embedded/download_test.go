//go:build unix && !aix && !solaris

package embedded

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

func TestDownload_FetchesOnceForAll(t *testing.T) {
	h := bareHost(t)
	var fetches atomic.Int32
	h.fetch = func(_ embeddedpostgres.PostgresVersion, dir string) error {
		fetches.Add(1)
		install(t, filepath.Join(dir, "server", "bin"), "17.5", "initdb", "postgres")
		return nil
	}
	who, err := serverAccount()
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			b, err := h.find(t.Context(), Options{Version: "17", Progress: io.Discard}, who)
			if err != nil || !strings.HasPrefix(b.source, "downloaded 17.") {
				t.Errorf("found %+v, %v, want the download", b, err)
			}
		})
	}
	all.Wait()
	if n := fetches.Load(); n != 1 {
		t.Errorf("fetched %d times, want once", n)
	}
}

func TestDownload_FailureLeavesNothingHalfDone(t *testing.T) {
	h := bareHost(t)
	h.fetch = func(_ embeddedpostgres.PostgresVersion, dir string) error {
		install(t, filepath.Join(dir, "server", "bin"), "17.5", "initdb", "postgres")
		return errNoNetwork // As when the disk fills up at the end.
	}
	var progress bytes.Buffer
	_, err := h.start(t.Context(), Options{Version: "17", Progress: &progress})
	if !errors.Is(err, errNoNetwork) {
		t.Fatalf("%v, want %v", err, errNoNetwork)
	}
	left, err := filepath.Glob(filepath.Join(h.caches[0], "postgres", "*"))
	if err != nil || len(left) != 1 || !strings.HasSuffix(left[0], ".lock") {
		t.Errorf("left %v, want the lock file only", left)
	}
	if got := progress.String(); !strings.HasPrefix(got, "downloading PostgreSQL 17.") || strings.Contains(got, "downloaded") {
		t.Errorf("progress %q, want the announcement only", got)
	}
}

func TestDownload_CancelledCallerDoesNotWait(t *testing.T) {
	h := bareHost(t)
	fetching, release := make(chan struct{}), make(chan struct{})
	h.fetch = func(_ embeddedpostgres.PostgresVersion, dir string) error {
		close(fetching)
		<-release
		install(t, filepath.Join(dir, "server", "bin"), "17.5", "initdb", "postgres")
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := h.start(ctx, Options{Version: "17"})
		failed <- err
	}()
	<-fetching
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was cancelled", err)
	}
	close(release)
	if b := find(t, h, "17"); b.version != "17.5" {
		t.Errorf("found %+v, want the download that went on", b)
	}
}

func TestCacheFolder_SkipsWhatOthersCanWriteTo(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	open, own := filepath.Join(root, "open"), filepath.Join(root, "own")
	if err := os.Mkdir(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil { // Past the umask.
		t.Fatal(err)
	}
	dir, err := cacheFolder([]string{open, own})
	if err != nil || dir != filepath.Join(own, "postgres") {
		t.Errorf("chose %s, %v, want the folder of our own", dir, err)
	}
	if _, err := cacheFolder([]string{open}); err == nil {
		t.Error("took a folder that all can write to")
	}
}
