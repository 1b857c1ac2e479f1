package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

// topPatience bounds one look. A server that does not answer in that time counts as lost.
const topPatience = 5 * time.Second

// topLoop looks and draws until a key or the context ends it.
type topLoop struct {
	read     topReader
	interval time.Duration
	paint    paint
	out      io.Writer
	size     func() (width, height int)
	keys     <-chan byte
	resized  <-chan os.Signal
}

// looked is what became of one look.
type looked struct {
	reading topReading
	err     error
}

// run draws the first look and goes on. One look at a time is under way; meanwhile keys and a new
// size of the terminal are heeded, and while the database is lost the view tells for how long.
func (l topLoop) run(ctx context.Context, first topReading) {
	ctx, cancel := context.WithCancel(ctx)
	view := topView{reading: first, interval: l.interval}
	lookedAt := time.Now()
	answers := make(chan looked, 1)
	next := time.NewTimer(l.interval)
	second := time.NewTicker(time.Second)
	looking := false
	defer func() {
		next.Stop()
		second.Stop()
		cancel()
		if looking {
			<-answers
		}
	}()
	for {
		l.draw(view)
		select {
		case <-ctx.Done():
			return
		case key := <-l.keys:
			if endsTop(key) {
				return
			}
		case <-l.resized:
		case <-second.C:
		case <-next.C:
			looking = true
			go func() { answers <- l.look(ctx) }()
		case found := <-answers:
			looking = false
			next.Reset(l.interval)
			if found.err == nil {
				lookedAt = time.Now()
			}
			view = view.then(found)
		}
		if view.lost != nil {
			view.lostFor = time.Since(lookedAt)
		}
	}
}

func (l topLoop) look(ctx context.Context) looked {
	ctx, cancel := context.WithTimeoutCause(ctx, topPatience, fmt.Errorf("no answer within %s", topPatience))
	defer cancel()
	reading, err := l.read(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return looked{reading: reading, err: err}
}

// endsTop tells whether a key ends the view: in raw mode Ctrl-C and Ctrl-D are keys like others.
func endsTop(key byte) bool {
	const ctrlC, ctrlD = 3, 4
	return key == 'q' || key == ctrlC || key == ctrlD
}

// draw writes the whole view over the one before, in one go, so that nothing flickers.
func (l topLoop) draw(view topView) {
	width, height := l.size()
	var frame bytes.Buffer
	frame.WriteString(cursorHome)
	for i, line := range renderTop(view, width, height, l.paint) {
		if i > 0 {
			frame.WriteString("\r\n")
		}
		frame.WriteString(line + clearLine)
	}
	frame.WriteString(clearBelow)
	_, _ = l.out.Write(frame.Bytes()) // A terminal that is gone ends the process by its signal.
}
