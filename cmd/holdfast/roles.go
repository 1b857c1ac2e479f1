package main

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/domain"
)

func rolesCommand() *cli.Command {
	return &cli.Command{
		Name:  "roles",
		Usage: "give roles of the server a duty: producer, worker, operator or viewer",
		Subcommands: []*cli.Command{
			{
				Name:  "create",
				Usage: "make a role for each duty, which cannot log in, unless it exists",
				Flags: append([]cli.Flag{
					&cli.StringFlag{Name: "prefix", Usage: "the roles are `PREFIX`_producer, _worker, _operator and _viewer", Value: "holdfast"},
				}, databaseFlags()...),
				Action: withArgs(0, 0, createRoles),
			},
			{
				Name:      "grant",
				Usage:     "let a role do what a duty asks, and nothing else; without arguments, all of them again",
				ArgsUsage: "[DUTY ROLE]",
				Flags:     databaseFlags(),
				Action:    withArgs(0, 2, grantRoles),
			},
			{
				Name:      "revoke",
				Usage:     "take its duty from a role, which itself stays",
				ArgsUsage: "ROLE",
				Flags:     databaseFlags(),
				Action:    withArgs(1, 1, revokeRole),
			},
			{
				Name:   "list",
				Usage:  "list the roles that have a duty, and what they lack of it",
				Flags:  append([]cli.Flag{outputFlag()}, databaseFlags()...),
				Action: withArgs(0, 0, listRoles),
			},
		},
	}
}

func createRoles(c *cli.Context) error {
	prefix := c.String("prefix")
	if prefix == "" {
		return usage("--prefix is empty")
	}
	if err := domain.CheckRolePrefix(prefix); err != nil {
		return err
	}
	return withDatabase(c, func(pool *pgxpool.Pool) error {
		created, err := domain.CreateRoles(c.Context, pool, prefix)
		if err != nil {
			return err
		}
		for _, duty := range domain.Duties() {
			fmt.Fprintf(c.App.Writer, "%s_%s has its duty\n", prefix, duty)
		}
		fmt.Fprintf(c.App.ErrWriter, "%d of them were made; nobody can log in as one: GRANT them to who does the work\n", created)
		return nil
	})
}

func grantRoles(c *cli.Context) error {
	duty, role := domain.Duty(c.Args().Get(0)), c.Args().Get(1)
	switch c.NArg() {
	case 0:
		return withDatabase(c, grantAgain(c))
	case 1:
		return usage("give a duty and a role, or neither")
	}
	if err := duty.Check(); err != nil {
		return err
	}
	return withDatabase(c, func(pool *pgxpool.Pool) error {
		privileges, err := domain.GrantRole(c.Context, pool, duty, role)
		if err == nil {
			fmt.Fprintf(c.App.Writer, "%s is a %s: %d privileges\n", role, duty, privileges)
		}
		return err
	})
}

func grantAgain(c *cli.Context) func(pool *pgxpool.Pool) error {
	return func(pool *pgxpool.Pool) error {
		roles, err := domain.GrantRoles(c.Context, pool)
		if err == nil {
			fmt.Fprintf(c.App.Writer, "%d roles have what their duty needs\n", roles)
		}
		return err
	}
}

func revokeRole(c *cli.Context) error {
	return withDatabase(c, func(pool *pgxpool.Pool) error {
		err := domain.RevokeRole(c.Context, pool, c.Args().First())
		if err == nil {
			fmt.Fprintf(c.App.Writer, "%s has no duty any more; the role itself stays\n", c.Args().First())
		}
		return err
	})
}

func listRoles(c *cli.Context) error {
	return withDatabase(c, func(pool *pgxpool.Pool) error {
		roles, err := domain.ListRoles(c.Context, pool)
		if err != nil {
			return err
		}
		return printItems(c, roles,
			column[domain.Role]{"ROLE", func(r domain.Role) string { return r.Name }},
			column[domain.Role]{"DUTY", func(r domain.Role) string { return string(r.Duty) }},
			column[domain.Role]{"LACKS", lacks},
		)
	})
}

// lacks is what a role lacks of its duty.
func lacks(role domain.Role) string {
	if !role.Exists {
		return "everything: the server has no such role"
	}
	if len(role.Missing) == 0 {
		return "nothing"
	}
	texts := make([]string, len(role.Missing))
	for i, privilege := range role.Missing {
		texts[i] = privilege.String()
	}
	return strings.Join(texts, "; ")
}
