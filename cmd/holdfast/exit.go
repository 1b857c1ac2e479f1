package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/app"
	"github.com/holdfast-pg/holdfast/domain"
)

// The exit codes. They are part of the interface: scripts branch on them.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitFindings    = 3
	exitUnreachable = 4
	exitInterrupted = 130
)

// usageError says that the command line is wrong, not the world.
type usageError struct {
	problem string
}

func (e *usageError) Error() string { return e.problem }

func usage(format string, args ...any) error {
	return &usageError{problem: fmt.Sprintf(format, args...)}
}

// findingsError says that a check has done its work, and found something.
type findingsError struct {
	count int
}

func (e *findingsError) Error() string {
	if e.count == 1 {
		return "1 finding"
	}
	return fmt.Sprintf("%d findings", e.count)
}

// asUsageError takes errors of the flag parser.
func asUsageError(c *cli.Context, err error, _ bool) error {
	problem := err.Error()
	if name, unknown := strings.CutPrefix(problem, "flag provided but not defined: -"); unknown {
		problem = "unknown flag --" + name
	}
	return usage("%s; try `%s --help`", problem, c.Command.HelpName)
}

func exitCode(ctx context.Context, err error) int {
	var wrongUsage *usageError
	var invalid *domain.InvalidError
	var findings *findingsError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &wrongUsage), errors.As(err, &invalid), errors.Is(err, app.ErrNoDatabase), errors.Is(err, app.ErrInvalidURL), errors.Is(err, app.ErrInvalidAddress):
		return exitUsage
	case errors.As(err, &findings):
		return exitFindings
	case ctx.Err() != nil:
		return exitInterrupted
	case errors.Is(err, app.ErrUnreachable):
		return exitUnreachable
	default:
		return exitFailed
	}
}
