package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-pg/holdfast/integration/soak/wire"
)

// orders are what a process of the run is told, in its environment.
type orders struct {
	Role    string `json:"role"`
	Name    string `json:"name"` // With the number of this start: worker-2.5.
	Dir     string `json:"dir"`  // Where its history goes.
	JobsURL string `json:"jobs"`
	SinkURL string `json:"sink"`
	Seed    uint64 `json:"seed"`

	// ClockOffset is how wrong the clock of a worker is.
	ClockOffset time.Duration `json:"clock_offset,omitempty"`
	// NoHousekeeping keeps a worker from it for the time of the run.
	NoHousekeeping bool `json:"no_housekeeping,omitempty"`
	// Rate is how many jobs a second a producer enqueues.
	Rate int `json:"rate,omitempty"`
}

// ordersVariable makes this program a process of a run.
const ordersVariable = "HOLDFAST_SOAK_ORDERS"

// member is a worker or a producer of the run: one process at a time.
type member struct {
	name string
	line *wire.Line // Its way to the jobs.
	base orders

	life   sync.Mutex // Held while one process takes the place of another.
	mutex  sync.Mutex // Guards what follows.
	starts int
	now    *process
}

// process is one start of a member.
type process struct {
	command *exec.Cmd
	ended   chan struct{} // Closed when err holds.
	err     error
	told    bool // It was told to end, or killed.
}

// start runs the member again, with orders that differ from its usual ones if change says so.
func (m *member) start(change func(*orders)) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.starts++
	given := m.base
	given.Name = fmt.Sprintf("%s.%d", m.name, m.starts)
	given.Seed += uint64(m.starts)
	if change != nil {
		change(&given)
	}
	text, err := json.Marshal(given)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(given.Dir, given.Name+".log"))
	if err != nil {
		return err
	}
	command := exec.Command(program)
	command.Env = append(os.Environ(), ordersVariable+"="+string(text))
	command.Stdout, command.Stderr = log, log
	// It ends with this program, however that ends, because the pipe does.
	_, err = command.StdinPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return errors.Join(err, log.Close())
	}
	started := &process{command: command, ended: make(chan struct{})}
	m.now = started
	go func() {
		defer close(started.ended)
		started.err = errors.Join(command.Wait(), log.Close())
	}()
	return nil
}

// replace ends the member's process, if it can in the way that was chosen, and starts another.
func (m *member) replace(end func() error, change func(*orders)) error {
	m.life.Lock()
	defer m.life.Unlock()
	return errors.Join(end(), m.start(change))
}

// signal sends a signal to the member's process, paused or not.
func (m *member) signal(signal os.Signal) error {
	if signal == nil {
		return errors.ErrUnsupported
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.now.command.Process.Signal(signal)
}

// kill ends the member's process at once.
func (m *member) kill() error {
	current := m.tell()
	err := current.command.Process.Kill()
	<-current.ended
	return err
}

// drain asks the member's process to end, and kills it when it does not.
func (m *member) drain(ctx context.Context, patience time.Duration) error {
	current := m.tell()
	if err := current.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-current.ended:
		return current.err
	case <-ctx.Done():
	case <-late.C:
	}
	return errors.Join(fmt.Errorf("%s did not end within %s", m.name, patience), m.kill())
}

// tell notes that the process is about to end on purpose.
func (m *member) tell() *process {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.now.told = true
	return m.now
}

// ownEnd returns an error if the member's process ended though nobody told it to.
func (m *member) ownEnd() error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	select {
	case <-m.now.ended:
		if !m.now.told {
			return fmt.Errorf("%s.%d ended by itself: %w", m.name, m.starts, m.now.err)
		}
	default:
	}
	return nil
}
