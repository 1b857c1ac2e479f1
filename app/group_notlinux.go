//go:build unix && !linux

package app

import "syscall"

// dieWithParent does nothing: only Linux has a signal for that.
func dieWithParent(*syscall.SysProcAttr) {}
