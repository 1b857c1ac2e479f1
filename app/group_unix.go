//go:build unix

package app

import (
	"os/exec"
	"syscall"
)

// OwnProcessGroup keeps a Ctrl-C that is meant for the worker from its programs, and stops a
// program together with its children. On Linux it also ends the program, though not its
// children, when the worker is killed: the job will be claimed by another one.
func OwnProcessGroup(program *exec.Cmd) {
	program.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(program.SysProcAttr)
	program.Cancel = func() error { return syscall.Kill(-program.Process.Pid, syscall.SIGTERM) }
}

// killGroup ends what is left of a program that was stopped.
func killGroup(program *exec.Cmd) {
	if program.Process != nil {
		_ = syscall.Kill(-program.Process.Pid, syscall.SIGKILL)
	}
}
