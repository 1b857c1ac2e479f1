package main

import (
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/worker"
)

// workSetting is a setting of a worker that `work` takes: as a flag, or from the environment.
type workSetting struct {
	field    string // Of holdfast.Config.
	flag     string
	variable string
}

// workSettings are all of them.
var workSettings = []workSetting{
	{"Concurrency", "concurrency", "HOLDFAST_CONCURRENCY"},
	{"Affinity", "affinity", "HOLDFAST_AFFINITY"},
	{"Lease", "lease", "HOLDFAST_LEASE"},
	{"Heartbeat", "heartbeat", "HOLDFAST_HEARTBEAT"},
	{"Housekeeping", "housekeeping", "HOLDFAST_HOUSEKEEPING"},
	{"Connections", "connections", "HOLDFAST_CONNECTIONS"},
	{"DrainDeadline", "drain-deadline", "HOLDFAST_DRAIN_DEADLINE"},
}

// workFlags are the flags of these settings.
func workFlags() []cli.Flag {
	defaults := worker.Config{}.WithDefaults()
	flags := []cli.Flag{
		&cli.IntFlag{Name: "concurrency", Usage: "`N` programs run at once", Value: defaults.Concurrency},
		&cli.StringFlag{Name: "affinity", Usage: "`WHICH` jobs to claim: ring, those whose keys fall to this worker, or none, any", Value: string(defaults.Affinity)},
		&cli.DurationFlag{Name: "lease", Usage: "`DURATION` that a dead worker keeps its jobs", Value: defaults.Lease},
		&cli.DurationFlag{Name: "heartbeat", Usage: "`DURATION` between signs of life; after three of them without one the worker counts as dead", Value: defaults.Heartbeat},
		&cli.DurationFlag{Name: "housekeeping", Usage: "`DURATION` between reclaims of ended leases", Value: defaults.Housekeeping},
		&cli.IntFlag{Name: "connections", Usage: "`N` connections of its own at most, besides the one that listens", Value: defaults.Connections},
		&cli.DurationFlag{Name: "drain-deadline", Usage: "`DURATION` that a stopping worker lets programs finish", Value: defaults.DrainDeadline},
	}
	for i, setting := range workSettings {
		switch flag := flags[i].(type) {
		case *cli.IntFlag:
			flag.EnvVars = []string{setting.variable}
		case *cli.StringFlag:
			flag.EnvVars = []string{setting.variable}
		case *cli.DurationFlag:
			flag.EnvVars = []string{setting.variable}
		}
	}
	return flags
}

// workConfig is the configuration that flags and environment give.
func workConfig(c *cli.Context) (holdfast.Config, error) {
	config := holdfast.Config{
		Concurrency:   c.Int("concurrency"),
		Affinity:      holdfast.Affinity(c.String("affinity")),
		Lease:         c.Duration("lease"),
		Heartbeat:     c.Duration("heartbeat"),
		Housekeeping:  c.Duration("housekeeping"),
		Connections:   c.Int("connections"),
		DrainDeadline: c.Duration("drain-deadline"),
	}
	return config, checkPositive(c, "concurrency", "lease", "heartbeat", "housekeeping", "connections", "drain-deadline")
}

// source tells where the value comes from; "" when it is the default. A flag that says what the
// variable says is not told from it.
func (s workSetting) source(c *cli.Context) string {
	value := fmt.Sprint(c.Value(s.flag))
	if !c.IsSet(s.flag) || value == "" {
		return ""
	}
	text := os.Getenv(s.variable)
	if duration, err := time.ParseDuration(text); err == nil {
		text = duration.String()
	}
	if text == value {
		return fromEnvironment + ": " + s.variable
	}
	return fromFlag
}
