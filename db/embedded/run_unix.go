//go:build unix && !aix && !solaris

package embedded

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

func supported() error { return nil }

// How postgres is told to end: without a checkpoint, or as soon as its sessions are ended.
const (
	immediately = syscall.SIGQUIT
	inOrder     = syscall.SIGINT
)

// ownGroup puts a child into a process group of its own and, for an account, drops root's privileges and
// supplementary groups.
func ownGroup(who account) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if who != (account{}) {
		attr.Credential = &syscall.Credential{Uid: uint32(who.uid), Gid: uint32(who.gid)}
	}
	return attr
}

// tryLock takes the file's lock, or returns false when another holds it. The lock ends with the open
// file, and so with the process: one that is killed leaves no stale lock.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// onlyOurs says whether nobody but this user, and root, can put something into the folder.
func onlyOurs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && int(stat.Uid) == os.Geteuid() && info.Mode().Perm()&0o022 == 0
}
