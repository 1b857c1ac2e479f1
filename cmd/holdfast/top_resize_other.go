//go:build !unix

package main

import "os"

// resizes tells nothing: there is no signal for it. The size is asked for at each look.
func resizes() (resized <-chan os.Signal, stop func()) { return nil, func() {} }
