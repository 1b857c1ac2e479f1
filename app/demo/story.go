package demo

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/holdfast-pg/holdfast/app"
)

// story prints what happens, with the seconds since its beginning.
type story struct {
	mutex  sync.Mutex
	out    io.Writer
	began  time.Time
	colour bool
}

const (
	plain  = "\x1b[0m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	bright = "\x1b[1m"
)

func newStory(out io.Writer) *story {
	return &story{out: out, began: time.Now(), colour: app.IsTerminal(out) && os.Getenv("NO_COLOR") == ""}
}

func (s *story) paint(colour, text string) string {
	if !s.colour {
		return text
	}
	return colour + text + plain
}

func (s *story) title(text string) {
	fmt.Fprintf(s.out, "%s %s\n\n", s.paint(bright, "holdfast demo:"), text)
}

func (s *story) tell(format string, args ...any) {
	s.line(fmt.Sprintf(format, args...))
}

func (s *story) warn(format string, args ...any) {
	s.line(s.paint(red, fmt.Sprintf(format, args...)))
}

func (s *story) line(text string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	fmt.Fprintf(s.out, "%6.1f s  %s\n", time.Since(s.began).Seconds(), text)
}
