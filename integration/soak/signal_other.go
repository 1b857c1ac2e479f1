//go:build !unix

package main

import "os"

// Without signals no process is paused.
var pauseSignal, goOnSignal os.Signal
