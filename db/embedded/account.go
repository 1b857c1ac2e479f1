package embedded

import (
	"errors"
	"os"
	"os/user"
	"strconv"
)

// account is the user that a server runs as when this process is root, because initdb and postgres refuse
// to run as root. The zero value means the user of this process.
type account struct{ uid, gid int }

// accounts are the users to run as, best first. Each must be in the machine's list of users: initdb ends
// with "could not look up effective user ID" for a bare number.
var accounts = []string{"postgres", "_postgres", "nobody"}

func serverAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	for _, name := range accounts {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if errUID == nil && errGID == nil && uid != 0 {
			return account{uid: int(uid), gid: int(gid)}, nil
		}
	}
	return account{}, errors.New("postgres does not run as root, and there is neither a user postgres nor a user nobody: " +
		"create one, or run as an ordinary user")
}
