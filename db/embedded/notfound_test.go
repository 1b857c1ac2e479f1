package embedded

import (
	"os"
	"path/filepath"
	"testing"
)

func TestInstallLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ goos, release, version, want string }{
		{"linux", "ID=debian\n", "", "apt-get install postgresql"},
		{"linux", "NAME=Mint\nID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "17", "apt-get install postgresql-17"},
		{"linux", "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "", "dnf install postgresql-server"},
		{"linux", "ID=alpine\n", "18", "apk add postgresql18"},
		{"linux", "", "", "with the packages of your system; it must bring initdb and postgres"},
		{"darwin", "", "", "brew install postgresql@18"},
		{"darwin", "", "16", "brew install postgresql@16"},
	} {
		file := filepath.Join(t.TempDir(), "os-release")
		if err := os.WriteFile(file, []byte(c.release), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := installLine(c.goos, osRelease(file), c.version); got != c.want {
			t.Errorf("%s %q %q: %q, want %q", c.goos, c.release, c.version, got, c.want)
		}
	}
}
