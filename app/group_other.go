//go:build !unix

package app

import (
	"os"
	"os/exec"
)

// OwnProcessGroup asks the program to end when its job is lost.
func OwnProcessGroup(program *exec.Cmd) {
	program.Cancel = func() error { return program.Process.Signal(os.Interrupt) }
}

// killGroup does nothing: the children of a program are not known here.
func killGroup(*exec.Cmd) {}
