package embedded

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// showDownload announces a download until it is done. A bundle has 15 MB for Linux, and 33 MB for macOS,
// where it serves both architectures. The library does not tell how far it is, so a terminal gets a
// spinner with the time passed, and anything else two lines.
func showDownload(ctx context.Context, w io.Writer, version embeddedpostgres.PostgresVersion, done <-chan error) error {
	text := fmt.Sprintf("downloading PostgreSQL %s (15 to 35 MB, once)", version)
	spin, finish := func() {}, func() {}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		spin, finish = spinner(w, text)
	} else {
		fmt.Fprintln(w, text)
	}
	start := time.Now()
	turn := time.NewTicker(100 * time.Millisecond)
	defer turn.Stop()
	for {
		select {
		case err := <-done:
			finish()
			if err == nil {
				fmt.Fprintf(w, "downloaded PostgreSQL %s in %.0f s\n", version, time.Since(start).Seconds())
			}
			return err
		case <-ctx.Done():
			finish()
			return context.Cause(ctx)
		case <-turn.C:
			spin()
		}
	}
}

// spinner turns only when told to, so that no goroutine of the library writes to w behind our back. What
// it writes is for the eye: an error from it changes nothing.
func spinner(w io.Writer, text string) (spin, finish func()) {
	bar := progressbar.NewOptions(-1,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(text),
		progressbar.OptionSetSpinnerChangeInterval(0),
		progressbar.OptionSpinnerType(14),
		progressbar.OptionClearOnFinish(),
	)
	return func() { _ = bar.Add(1) }, func() { _ = bar.Finish() }
}
