package main

import (
	"os"
	"os/user"

	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/domain"
)

// operatorFlags say who gives an order, and why.
func operatorFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "actor", Usage: "`NAME` of who orders it, for the event that it leaves", DefaultText: "user@host"},
		&cli.StringFlag{Name: "reason", Usage: "`TEXT` that says why, for the event and for whoever reads it"},
	}
}

// operator is who gives the order that the command line is.
func operator(c *cli.Context) (domain.By, error) {
	by := domain.By{Actor: c.String("actor"), Reason: c.String("reason")}
	if !c.IsSet("actor") {
		by.Actor = domain.ActorOn(userName(), hostName())
	}
	return by.Check()
}

func userName() string {
	if current, err := user.Current(); err == nil && current.Username != "" {
		return current.Username
	}
	return "unknown"
}

func hostName() string {
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return "unknown"
}
