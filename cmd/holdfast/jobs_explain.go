package main

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/app/support"
	"github.com/holdfast-pg/holdfast/domain"
)

func explainCommand() *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "print why a job is not running, and what to do about it",
		ArgsUsage: "ID",
		Flags:     append([]cli.Flag{outputFlag()}, readFlags()...),
		Action:    withArgs(1, 1, explainJob),
	}
}

func explainJob(c *cli.Context) error {
	id, err := domain.ParseJobID(c.Args().First())
	if err != nil {
		return err
	}
	return withReplica(c, func(pool *pgxpool.Pool) error {
		found, err := support.Explain(c.Context, pool, id)
		if err != nil {
			return err
		}
		facts := []fact{
			{"job", found.Job},
			{"state", found.State},
			{"queue", found.Queue},
			{"kind", found.Kind},
			{"key", found.Key},
			{"bucket", found.Bucket},
		}
		return printRecord(c, found, append(facts, reasonFacts("", "why", found.Reasons)...)...)
	})
}

// reasonFacts are two lines for each reason, and more for what it is because of.
func reasonFacts(indent, name string, reasons []support.Reason) (facts []fact) {
	for _, reason := range reasons {
		facts = append(facts, fact{indent + name, reason.Text})
		facts = append(facts, reasonFacts(indent+"  ", "because", reason.Because)...)
		facts = append(facts, fact{indent + "do", reason.Do})
	}
	return facts
}
