//go:build !unix || aix || solaris

package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"syscall"
)

func supported() error {
	return fmt.Errorf("no private server on %s: give the address of a running one with --database-url", runtime.GOOS)
}

// What follows is never used, because Start ends with the error above.

var (
	immediately = os.Kill
	inOrder     = os.Interrupt
)

func ownGroup(account) *syscall.SysProcAttr { return nil }

func tryLock(*os.File) (bool, error) { return false, errors.ErrUnsupported }

func onlyOurs(fs.FileInfo) bool { return false }
