//go:build unix && !aix && !solaris

package embedded

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func start(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// openDir makes a temporary directory like /tmp, where the server's account may make directories of its
// own. The directories of t.TempDir are closed to other users.
func openDir(t *testing.T) string {
	t.Helper()
	who, err := serverAccount()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(tempFolder(who), "embedded-test-") //nolint:usetesting // See above.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	return dir
}

// eventually polls until the condition holds, and fails after a generous while.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	limit := time.After(30 * time.Second)
	retry := time.NewTicker(10 * time.Millisecond)
	defer retry.Stop()
	for !holds() {
		select {
		case <-limit:
			t.Fatalf("waited 30 s in vain: %s", what)
		case <-retry.C:
		}
	}
}

func listens(t *testing.T, address string) bool {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(t.Context(), "tcp", u.Host)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

func isEmpty(t *testing.T, dir string) bool {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(entries) == 0
}

func TestStart_ServerIsPrivateAndPlain(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Parameters: map[string]string{"work_mem": "7MB"}})
	conn, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())

	for setting, want := range map[string]string{
		"listen_addresses":        "127.0.0.1",
		"unix_socket_directories": "",
		"max_connections":         "200",
		"fsync":                   "on",
		"server_encoding":         "UTF8",
		"is_superuser":            "on",
		"work_mem":                "7MB",
		"TimeZone":                "UTC",
	} {
		var got string
		if err := conn.QueryRow(t.Context(), `SELECT current_setting($1)`, setting).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s = %q, want %q", setting, got, want)
		}
	}
	var collation, version string
	err = conn.QueryRow(t.Context(), `
		SELECT datcollate, current_setting('server_version')
		FROM pg_database
		WHERE datname = 'postgres'
	`).Scan(&collation, &version)
	if err != nil {
		t.Fatal(err)
	}
	if collation != "C" {
		t.Errorf("collation %q, want C", collation)
	}
	if !strings.HasPrefix(s.Version(), "PostgreSQL ") || !strings.HasPrefix("PostgreSQL "+version, s.Version()) {
		t.Errorf("Version() = %q, the server says %q", s.Version(), version)
	}
}

func TestStart_ParametersWinOverDefaultsOnly(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Parameters: map[string]string{
		"max_connections":  "17",
		"fsync":            "off",
		"listen_addresses": "*",
	}})
	conn, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for setting, want := range map[string]string{
		"max_connections":  "17",
		"fsync":            "off",
		"listen_addresses": "127.0.0.1",
	} {
		var got string
		if err := conn.QueryRow(t.Context(), `SELECT current_setting($1)`, setting).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s = %q, want %q", setting, got, want)
		}
	}
}

func TestStart_RefusesAnyOtherPassword(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(start(t, Options{}).URL())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("holdfast", "guess")
	conn, err := pgx.Connect(t.Context(), u.String())
	if err == nil {
		_ = conn.Close(t.Context())
		t.Fatal("connected with a wrong password")
	}
	if !strings.Contains(err.Error(), "28P01") {
		t.Errorf("%v, want SQLSTATE 28P01", err)
	}
}

func TestStop_LeavesNothingAndMayBeCalledTwice(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	conn, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())

	for range 2 {
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if listens(t, s.URL()) {
		t.Error("the port is still open")
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data directory: %v, want that it does not exist", err)
	}
}

func TestStart_SaysWhyTheServerEnded(t *testing.T) {
	dir := openDir(t)
	t.Setenv("TMPDIR", dir)
	_, err := Start(t.Context(), Options{Parameters: map[string]string{"shared_buffers": "plenty"}})
	if err == nil || !strings.Contains(err.Error(), `invalid value for parameter "shared_buffers": "plenty"`) {
		t.Fatalf("%v, want the server's own words", err)
	}
	if !isEmpty(t, dir) {
		t.Error("the failed start left files")
	}
}

func TestStart_CancelLeavesNothing(t *testing.T) {
	dir := openDir(t)
	t.Setenv("TMPDIR", dir)
	ctx, cancel := context.WithCancelCause(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := Start(ctx, Options{})
		failed <- err
	}()
	// The log exists from the moment the guard runs.
	eventually(t, "the guard runs", func() bool {
		logs, _ := filepath.Glob(filepath.Join(dir, "*", "log"))
		return len(logs) > 0
	})
	reason := errors.New("changed my mind")
	cancel(reason)
	if err := <-failed; !errors.Is(err, reason) {
		t.Errorf("%v, want %v", err, reason)
	}
	if !isEmpty(t, dir) {
		t.Error("the cancelled start left files")
	}
}

func TestStart_TakesAnotherPortWhenTheFirstIsLost(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { // Ends when the listener is closed.
		for conn, err := taken.Accept(); err == nil; conn, err = taken.Accept() {
			_ = conn.Close()
		}
	}()
	defer taken.Close()
	asked := 0
	h := thisHost()
	h.port = func() (int, error) {
		asked++
		if asked == 1 {
			return taken.Addr().(*net.TCPAddr).Port, nil
		}
		return freePort()
	}
	s, err := h.start(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if asked != 2 {
		t.Errorf("asked for %d ports, want 2", asked)
	}
}

// The empty PATH hides local servers, and shows that the guard finds rm and sleep by itself.
func TestStart_RunsTheDownload(t *testing.T) {
	t.Setenv("PATH", "")
	h := thisHost()
	h.folders = nil
	var progress bytes.Buffer
	began := time.Now()
	s, err := h.start(t.Context(), Options{Version: "18", Progress: &progress})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s, %s, in %v; %s", s.Version(), s.Source(), time.Since(began), &progress)
	defer s.Stop()
	if !strings.HasPrefix(s.Source(), "downloaded 18.") || !strings.HasPrefix(s.Version(), "PostgreSQL 18.") {
		t.Errorf("%s, %s, want the download of 18", s.Version(), s.Source())
	}
	conn, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	// PL/pgSQL and a conversion come from the bundle's lib folder, the time zones from its share folder.
	if _, err := conn.Exec(t.Context(), `
		DO $$
		BEGIN
		    PERFORM convert_to('ä', 'LATIN1'), now() AT TIME ZONE 'Europe/Zurich';
		END
		$$
	`); err != nil {
		t.Error(err)
	}
}
