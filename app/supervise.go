package app

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/holdfast-pg/holdfast/worker"
)

// superviseEvery is how often a worker is looked at for systemd.
const superviseEvery = 500 * time.Millisecond

// supervise tells systemd, where it has started the process and waits to be told (Type=notify), when
// the worker has joined and when it drains; and where it asks for it (WatchdogSec=), that the worker's
// loops come round, which is what /livez answers. Elsewhere it does nothing.
func supervise(health func() worker.Health, log *slog.Logger) (stop func()) {
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("systemd's watchdog is not served", "error", err)
	}
	if heard, err := daemon.SdNotify(false, "STATUS=waiting for the database"); err != nil || !heard {
		if err != nil {
			log.Warn("systemd is not told how the worker is", "error", err)
		}
		return func() {}
	}
	every := superviseEvery
	if watchdog > 0 {
		every = min(every, watchdog/4)
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		var said worker.State
		for {
			said = report(health(), said, watchdog > 0)
			select {
			case <-ticker.C:
			case <-done:
				report(worker.Health{State: worker.StateEnded}, said, false)
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

// report tells systemd of a state that it has not been told, and returns what it knows then.
func report(health worker.Health, said worker.State, watched bool) worker.State {
	tell := func(state string) { _, _ = daemon.SdNotify(false, state) } // It may be gone, which is no reason to stop.
	if watched && len(health.Stalled) == 0 {
		tell(daemon.SdNotifyWatchdog)
	}
	if health.State == said {
		return said
	}
	switch health.State {
	case worker.StateWorking:
		tell(daemon.SdNotifyReady + fmt.Sprintf("\nSTATUS=working as %s", health.WorkerID))
	case worker.StateDraining:
		tell(daemon.SdNotifyStopping + fmt.Sprintf("\nSTATUS=draining, %d jobs in hand", health.InFlight))
	case worker.StateEnded:
		tell(daemon.SdNotifyStopping + "\nSTATUS=ended")
	case worker.StateJoining:
		tell("STATUS=waiting for the database")
	}
	return health.State
}
