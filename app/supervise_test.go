package app

import (
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/worker"
)

// supervisor stands for systemd: it takes the messages of this process.
func supervisor(t *testing.T, watchdog time.Duration) *net.UnixConn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	if watchdog > 0 {
		t.Setenv("WATCHDOG_USEC", strconv.FormatInt(watchdog.Microseconds(), 10))
	}
	return socket
}

// wantTold reads messages until one has the line, and fails at a line that must not come before it.
func wantTold(t *testing.T, socket *net.UnixConn, line, before string) {
	t.Helper()
	buffer := make([]byte, 4096)
	for {
		if err := socket.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := socket.Read(buffer)
		if err != nil {
			t.Fatalf("waiting for %s: %v", line, err)
		}
		lines := strings.Split(string(buffer[:n]), "\n")
		for _, told := range lines {
			if told == line {
				return
			}
			if before != "" && told == before {
				t.Fatalf("%s is told before %s", told, line)
			}
		}
	}
}

// Not parallel: the address of systemd is in the environment.
func TestSupervise_TellsSystemdWhatBecomesOfTheWorker(t *testing.T) {
	var now atomic.Pointer[worker.Health]
	turn := func(health worker.Health) { now.Store(&health) }
	socket := supervisor(t, 400*time.Millisecond)
	turn(worker.Health{State: worker.StateJoining})
	stop := supervise(func() worker.Health { return *now.Load() }, slog.New(slog.DiscardHandler))
	wantTold(t, socket, "STATUS=waiting for the database", "READY=1")
	turn(worker.Health{State: worker.StateWorking, WorkerID: "w1"})
	wantTold(t, socket, "READY=1", "STOPPING=1")
	wantTold(t, socket, "WATCHDOG=1", "READY=1")
	turn(worker.Health{State: worker.StateDraining, InFlight: 3})
	wantTold(t, socket, "STATUS=draining, 3 jobs in hand", "READY=1")
	stop()
	wantTold(t, socket, "STATUS=ended", "READY=1")
}

// A worker whose loops have stopped must look dead, so that systemd starts another.
func TestSupervise_StalledWorkerDoesNotFeedTheWatchdog(t *testing.T) {
	socket := supervisor(t, 200*time.Millisecond)
	stalled := worker.Health{State: worker.StateWorking, WorkerID: "w1", Stalled: []worker.Stall{{Loop: "claims"}}}
	stop := supervise(func() worker.Health { return stalled }, slog.New(slog.DiscardHandler))
	wantTold(t, socket, "STATUS=working as w1", "WATCHDOG=1")
	time.AfterFunc(500*time.Millisecond, stop) // Ten turns.
	wantTold(t, socket, "STATUS=ended", "WATCHDOG=1")
}

func TestSupervise_DoesNothingWhereNobodyAsks(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	supervise(func() worker.Health { t.Error("somebody looks at the worker"); return worker.Health{} }, slog.New(slog.DiscardHandler))()
}
