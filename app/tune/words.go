package tune

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// short is a duration with three digits at most, and without units that are zero.
func short(d time.Duration) string {
	switch {
	case d < time.Second:
		step := time.Duration(1)
		for d/step >= 1000 {
			step *= 10
		}
		d = d.Round(step)
	case d < 10*time.Second:
		d = d.Round(10 * time.Millisecond)
	case d < time.Minute:
		d = d.Round(100 * time.Millisecond)
	default:
		d = d.Round(time.Second)
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// number has three digits or more, commas between thousands, and no fraction that is zero.
func number(value float64) string {
	digits := 0
	if value > 0 && value < 100 {
		digits = min(max(0, 2-int(math.Floor(math.Log10(value)))), 6)
	}
	text := strconv.FormatFloat(value, 'f', digits, 64)
	if strings.Contains(text, ".") {
		return strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// size is a number of bytes.
func size(bytes int) string {
	switch {
	case bytes >= 1<<20 && bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MB", bytes>>20)
	case bytes >= 1<<10 && bytes%(1<<10) == 0:
		return fmt.Sprintf("%d KB", bytes>>10)
	default:
		return fmt.Sprintf("%d bytes", bytes)
	}
}

// counted is a number of things. All of them have a plural with s, or with es after s.
func counted(n int, thing string) string {
	switch {
	case n == 1:
		return "1 " + thing
	case strings.HasSuffix(thing, "s"):
		return fmt.Sprintf("%d %ses", n, thing)
	default:
		return fmt.Sprintf("%d %ss", n, thing)
	}
}
