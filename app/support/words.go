package support

import (
	"fmt"
	"strings"
	"time"
)

// span is a duration in words: to the second, and from a day on to the hour.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	d = max(d, 0)
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < day:
		return d.Round(time.Second).String()
	default:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	}
}

// stamp is a moment, in the zone of the machine.
func stamp(at time.Time) string {
	return at.Local().Format("2006-01-02 15:04:05 MST")
}

// excerpt is the beginning of a text that may be long, in one line and quotes.
func excerpt(text string) string {
	const most = 300
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) > most {
		return fmt.Sprintf("%q …", string(line[:most]))
	}
	return fmt.Sprintf("%q", string(line))
}

// counted is a number and what it counts: "1 job", "2 jobs".
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// listed names a few of many.
func listed(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
