package support

import (
	"strings"
	"testing"
	"time"
)

func TestWords_SpansAreReadAtAGlance(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 1499 * time.Microsecond: "1ms", 61*time.Second + 400*time.Millisecond: "1m1s",
		23*time.Hour + 59*time.Minute: "23h59m0s", 24 * time.Hour: "1d0h", 75*time.Hour + time.Minute: "3d3h",
	} {
		if got := span(d); got != want {
			t.Errorf("%d ns are %q, want %q", d, got, want)
		}
	}
}

func TestWords_LongTextsAndListsAreCut(t *testing.T) {
	t.Parallel()
	if got := excerpt("two\nlines " + strings.Repeat("ä", 400)); !strings.HasPrefix(got, `"two lines ää`) || !strings.HasSuffix(got, `ä" …`) || len([]rune(got)) != 304 {
		t.Errorf("%d characters: %s", len([]rune(got)), got)
	}
	if got := listed(strings.Split("abcdefg", "")); got != "a, b, c, d, e and 2 more" {
		t.Error(got)
	}
	if got := counted(1, "job") + ", " + counted(2, "job"); got != "1 job, 2 jobs" {
		t.Error(got)
	}
}
