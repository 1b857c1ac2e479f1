package bench

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/holdfast-pg/holdfast/app"
)

// progress shows a terminal how far the bench is, and nothing to anybody else. What it writes
// is for the eye: an error from it changes nothing.
type progress struct {
	out io.Writer
	bar *progressbar.ProgressBar
}

func newProgress(out io.Writer) *progress {
	return &progress{out: out}
}

// begin shows a step; total is 0 for one that cannot be counted.
func (p *progress) begin(step string, total int) {
	p.end()
	if p.out == nil || !app.IsTerminal(p.out) {
		return
	}
	options := []progressbar.Option{
		progressbar.OptionSetWriter(p.out),
		progressbar.OptionSetDescription(step),
		progressbar.OptionSetWidth(20),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetSpinnerChangeInterval(0),
		progressbar.OptionThrottle(100 * time.Millisecond),
		progressbar.OptionClearOnFinish(),
	}
	if total > 0 {
		options = append(options, progressbar.OptionShowCount())
	} else {
		total = -1
	}
	p.bar = progressbar.NewOptions(total, options...)
	_ = p.bar.RenderBlank()
}

// at says how much of the step is done.
func (p *progress) at(done int) {
	if p.bar != nil {
		_ = p.bar.Set(done)
	}
}

// end takes the step off the screen.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
}
