package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/app"
	"github.com/holdfast-pg/holdfast/app/simulate"
)

func simulateCommand() *cli.Command {
	var list strings.Builder
	for _, preset := range simulate.Presets() {
		fmt.Fprintf(&list, "\n  %-12s %s", preset.Name, preset.About)
	}
	return &cli.Command{
		Name:  "simulate",
		Usage: "watch workers meet, crash, pause and come back, in virtual time",
		Description: "Plays a short story with the real loop of the worker on a queue in memory. It needs no database and\n" +
			"takes no time: minutes of the story pass in milliseconds. The same seed gives the same output.\n\n" +
			"Presets:" + list.String(),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "preset", Usage: "the `PRESET` to play: " + strings.Join(simulate.Names(), ", ")},
			&cli.Int64Flag{Name: "seed", Usage: "`NUMBER` that all chance follows from", Value: 1},
			&cli.BoolFlag{Name: "step", Usage: "wait for Enter before each event; needs a terminal", DisableDefaultText: true},
			outputFlag(),
		},
		Action: withArgs(0, 0, runSimulate),
	}
}

func runSimulate(c *cli.Context) error {
	if !c.IsSet("preset") {
		return usage("--preset PRESET is missing: one of %s", strings.Join(simulate.Names(), ", "))
	}
	step := c.Bool("step")
	switch file, isFile := c.App.Reader.(*os.File); {
	case step && c.String(flagOutput) != formatTable:
		return usage("--step walks through a table, and --output is %s", c.String(flagOutput))
	case step && (!isFile || !app.IsTerminal(file)):
		return usage("--step waits for Enter, and stdin is no terminal: leave it out to print all events")
	}
	report, err := simulate.Run(c.Context, c.String("preset"), c.Int64("seed"))
	var unknown *simulate.UnknownError
	if errors.As(err, &unknown) {
		return usage("--%s", unknown.Error())
	}
	if err != nil {
		return err
	}
	return printSimulation(c, report, step)
}

func printSimulation(c *cli.Context, report simulate.Report, step bool) error {
	switch {
	case c.String(flagOutput) == formatJSON:
		return printJSON(c, report)
	case c.String(flagOutput) == formatLines:
		return printSimulationLines(c, report)
	case step:
		return stepThrough(c, report)
	}
	simulate.Print(c.App.Writer, report, nil)
	return nil
}

// printSimulationLines prints a line for each event, one for each scene, and one for what they
// teach.
func printSimulationLines(c *cli.Context, report simulate.Report) error {
	for _, scene := range report.Scenes {
		for _, event := range scene.Events {
			if err := printJSON(c, simulate.EventLine{Scene: scene.Name, Event: event}); err != nil {
				return err
			}
		}
		if err := printJSON(c, simulate.CountsLine{Scene: scene.Name, Outcome: scene.Outcome, Counts: scene.Counts}); err != nil {
			return err
		}
	}
	return printJSON(c, simulate.LessonLine{Preset: report.Preset, Seed: report.Seed, Lesson: report.Lesson})
}

// lineUp takes back the empty line that Enter leaves on a terminal.
const lineUp = "\x1b[A"

// stepThrough prints a report event by event, and waits for Enter before each, until the input ends.
func stepThrough(c *cli.Context, report simulate.Report) error {
	fmt.Fprintln(c.App.ErrWriter, "Enter shows the next event, Ctrl-D ends.")
	lines := make(chan bool)
	go func() {
		defer close(lines)
		for in := bufio.NewReader(c.App.Reader); ; {
			if _, err := in.ReadString('\n'); err != nil {
				return // Also at the end of the input.
			}
			select {
			case lines <- true:
			case <-c.Done():
				return
			}
		}
	}()
	simulate.Print(c.App.Writer, report, func() bool {
		select {
		case more := <-lines:
			if more && app.IsTerminal(c.App.Writer) {
				fmt.Fprint(c.App.Writer, lineUp)
			}
			return more
		case <-c.Done():
			return false
		}
	})
	return c.Err()
}
