package main

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/domain"
)

func leasesCommand() *cli.Command {
	return &cli.Command{
		Name:  "leases",
		Usage: "look at the work in flight",
		Subcommands: []*cli.Command{{
			Name:  "list",
			Usage: "list the work in flight, oldest claim first",
			Flags: append([]cli.Flag{
				&cli.BoolFlag{Name: "expired", Usage: "what is past its lease only", DisableDefaultText: true},
				&cli.StringFlag{Name: "queue", Usage: "that of this `QUEUE` only"},
				limitFlag("jobs"),
				afterFlag(),
				outputFlag(),
			}, readFlags()...),
			Action: withArgs(0, 0, listLeases),
		}},
	}
}

func listLeases(c *cli.Context) error {
	return withPage(c, func(pool *pgxpool.Pool, filter domain.JobFilter) (domain.JobPage, error) {
		return domain.ListLeases(c.Context, pool, filter, c.Bool("expired"))
	},
		column[domain.ListedJob]{"ID", func(j domain.ListedJob) string { return j.ID.String() }},
		column[domain.ListedJob]{"QUEUE", func(j domain.ListedJob) string { return j.Queue }},
		column[domain.ListedJob]{"KIND", func(j domain.ListedJob) string { return j.Kind }},
		column[domain.ListedJob]{"KEY", func(j domain.ListedJob) string { return j.PartitionKey }},
		column[domain.ListedJob]{"HELD BY", func(j domain.ListedJob) string { return orDash(j.ClaimedBy) }},
		column[domain.ListedJob]{"FOR", jobSince},
		column[domain.ListedJob]{"LEASE", leaseLeft},
	)
}

// leaseLeft says how much of a lease is left.
func leaseLeft(job domain.ListedJob) string {
	switch {
	case job.LeaseLeftSeconds == nil:
		return "-"
	case job.Expired():
		return "ended " + age(-*job.LeaseLeftSeconds) + " ago"
	default:
		return age(*job.LeaseLeftSeconds) + " left"
	}
}
