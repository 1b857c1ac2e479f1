package embedded

import (
	"bufio"
	"os"
	"runtime"
	"strings"
)

// NotFoundError says that there are no binaries to run: none on the machine that fit, and no download.
type NotFoundError struct {
	Version string   // The major version asked for, empty for any.
	Looked  []string // Each place with what was wrong there, in the order of looking.
	Err     error    // Why the download failed.
}

// Error names every place and ends with what to do.
func (e *NotFoundError) Error() string {
	var b strings.Builder
	b.WriteString("no PostgreSQL")
	if e.Version != "" {
		b.WriteString(" " + e.Version)
	}
	b.WriteString(" server to run; looked at\n")
	for _, place := range e.Looked {
		b.WriteString("  " + place + "\n")
	}
	b.WriteString("  " + e.Err.Error() + "\n")
	b.WriteString("install one (" + installLine(runtime.GOOS, osRelease("/etc/os-release"), e.Version) +
		"), or give the address of a running one with --database-url")
	return b.String()
}

func (e *NotFoundError) Unwrap() error { return e.Err }

// installLine is the command that installs a server: on Linux by the distribution, which is one of the
// words of ID and ID_LIKE in os-release.
func installLine(goos string, distribution []string, version string) string {
	if goos == "darwin" {
		if version == "" {
			version = "18"
		}
		return "brew install postgresql@" + version
	}
	for _, name := range distribution {
		switch name {
		case "debian", "ubuntu":
			if version != "" {
				return "apt-get install postgresql-" + version
			}
			return "apt-get install postgresql"
		case "fedora", "rhel", "centos":
			return "dnf install postgresql-server"
		case "alpine":
			return "apk add postgresql" + version
		case "arch":
			return "pacman -S postgresql"
		case "suse", "opensuse":
			return "zypper install postgresql-server"
		}
	}
	return "with the packages of your system; it must bring initdb and postgres"
}

// osRelease returns the words of ID and ID_LIKE, none when the file cannot be read.
func osRelease(name string) []string {
	file, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer file.Close()
	var words []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), "=")
		if key == "ID" || key == "ID_LIKE" {
			words = append(words, strings.Fields(strings.Trim(value, `"'`))...)
		}
	}
	return words
}
