//go:build !unix

package demo

import (
	"errors"
	"os"
)

// errNoPause ends the demo on a system without the signals.
var errNoPause = errors.New("this system cannot pause a process")

func (p *workerProcess) pause() error { return errNoPause }

func (p *workerProcess) wake() error { return errNoPause }

// awakenings returns a channel that never receives.
func awakenings() (awake <-chan os.Signal, stop func()) {
	return nil, func() {}
}
