package main

import (
	"fmt"
	"os"

	"golang.org/x/term"
)

// What a terminal is told. Every one that is in use today understands these.
const (
	cursorHome = "\x1b[H"
	clearLine  = "\x1b[K" // From the cursor to the end of the line.
	clearBelow = "\x1b[J"
	takeOver   = "\x1b[?1049h\x1b[?25l\x1b[?7l" // The other screen, no cursor, long lines are cut.
	giveBack   = "\x1b[?7h\x1b[?25h\x1b[?1049l"
)

// takeScreen shows an empty screen and delivers keys as they are pressed, until it is restored.
func takeScreen(keyboard, screen *os.File) (restore func(), err error) {
	before, err := term.MakeRaw(int(keyboard.Fd()))
	if err != nil {
		return nil, fmt.Errorf("take over the terminal: %w", err)
	}
	fmt.Fprint(screen, takeOver)
	return func() {
		fmt.Fprint(screen, giveBack)
		_ = term.Restore(int(keyboard.Fd()), before)
	}, nil
}

// sizeOf is how many characters a terminal shows; 80 by 24 for one that does not say.
func sizeOf(screen *os.File) (width, height int) {
	width, height, err := term.GetSize(int(screen.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// keysOf delivers what is pressed. It ends with the process: a read of a terminal that nobody
// types on cannot be taken back.
func keysOf(keyboard *os.File) <-chan byte {
	keys := make(chan byte)
	go func() {
		var key [1]byte
		for {
			if n, err := keyboard.Read(key[:]); err != nil || n == 0 {
				return
			}
			keys <- key[0]
		}
	}()
	return keys
}
