//go:build unix

package demo

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// pause stops the process where it stands. It cannot know, and holds what it holds.
func (p *workerProcess) pause() error {
	if err := p.command.Process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("pause %s: %w", p.name, err)
	}
	return nil
}

// wake lets a paused process go on.
func (p *workerProcess) wake() error {
	if err := p.command.Process.Signal(syscall.SIGCONT); err != nil {
		return fmt.Errorf("wake %s: %w", p.name, err)
	}
	return nil
}

// awakenings returns a channel that receives when this process has been paused and woken.
func awakenings() (awake <-chan os.Signal, stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCONT)
	return signals, func() { signal.Stop(signals) }
}
