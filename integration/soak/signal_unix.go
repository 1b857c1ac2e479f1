//go:build unix

package main

import (
	"os"
	"syscall"
)

// The signals that pause a process where it is, and let it go on.
var pauseSignal, goOnSignal os.Signal = syscall.SIGSTOP, syscall.SIGCONT
