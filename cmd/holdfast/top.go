package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/app"
	"github.com/holdfast-pg/holdfast/app/support"
	"github.com/holdfast-pg/holdfast/domain"
)

func topCommand() *cli.Command {
	return &cli.Command{
		Name:  "top",
		Usage: "watch the verdict, the queues, the workers and the rates",
		Description: "Shows on a terminal what `status` and more would print, again and again: q or Ctrl-C ends it. A database that\n" +
			"is lost is said so, and found again. Where stdin or stdout is no terminal it prints once, all there is.\n\n" +
			"Example:\n" +
			"  holdfast top --interval 5s",
		Flags: append([]cli.Flag{
			&cli.DurationFlag{Name: "interval", Usage: "`DURATION` from one look to the next", Value: 2 * time.Second},
			&cli.BoolFlag{Name: "print", Usage: "print once, all there is, and end", DisableDefaultText: true},
			outputFlag(),
		}, readFlags()...),
		Action: withArgs(0, 0, watch),
	}
}

func watch(c *cli.Context) error {
	if err := checkPositive(c, "interval"); err != nil {
		return err
	}
	return withReplica(c, func(pool *pgxpool.Pool) error {
		read := func(ctx context.Context) (topReading, error) { return readTop(ctx, c, pool) }
		first, err := read(c.Context)
		if err != nil {
			return err
		}
		keyboard, screen := terminals(c)
		switch {
		case c.String(flagOutput) != formatTable:
			return printJSON(c, first.Top)
		case c.Bool("print") || screen == nil:
			first.lag = nil // It stands on stderr.
			for _, line := range renderTop(topView{reading: first}, 0, 0, plainPaint) {
				fmt.Fprintln(c.App.Writer, line)
			}
			return nil
		default:
			return watchOn(c, keyboard, screen, first, read)
		}
	})
}

// watchOn watches on a terminal.
func watchOn(c *cli.Context, keyboard, screen *os.File, first topReading, read topReader) error {
	restore, err := takeScreen(keyboard, screen)
	if err != nil {
		return err
	}
	defer restore()
	paint := colourPaint
	if os.Getenv("NO_COLOR") != "" {
		paint = plainPaint
	}
	resized, stop := resizes()
	defer stop()
	loop := topLoop{
		read: read, interval: c.Duration("interval"), paint: paint, out: screen, size: func() (width, height int) { return sizeOf(screen) },
		keys: keysOf(keyboard), resized: resized,
	}
	loop.run(c.Context, first)
	return nil
}

// terminals are stdin and stdout, if a person sits there.
func terminals(c *cli.Context) (keyboard, screen *os.File) {
	keyboard, reads := c.App.Reader.(*os.File)
	screen, writes := c.App.Writer.(*os.File)
	if !reads || !writes || !app.IsTerminal(keyboard) || !app.IsTerminal(screen) {
		return nil, nil
	}
	return keyboard, screen
}

// topReading is what one look has found.
type topReading struct {
	support.Top

	lag *domain.Lag // Of the replica that it was read from; nil where none is named.
}

type topReader func(ctx context.Context) (topReading, error)

func readTop(ctx context.Context, c *cli.Context, pool *pgxpool.Pool) (reading topReading, err error) {
	if app.ReadURL(c.String(flagReadURL)) != "" {
		lag, err := domain.ReadLag(ctx, pool)
		if err != nil {
			return reading, err
		}
		reading.lag = &lag
	}
	reading.Top, err = support.ReadTop(ctx, pool)
	return reading, err
}
