package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-pg/holdfast/domain"
)

var roleGrants = check{
	id:       "role_grants",
	examines: "that every role that has a duty may do what it asks",
	why:      "A statement that the role may not run fails, and with it whatever the role was for.",
	severity: Error,
	schema:   true,
	find: func(ctx context.Context, p *patient) ([]symptom, error) {
		roles, err := domain.ListRoles(ctx, p.pool)
		if err != nil {
			return nil, err
		}
		var found []symptom
		for _, role := range roles {
			if !role.Exists {
				found = append(found, symptom{
					what: fmt.Sprintf("role %q, a %s, is not on this server", role.Name, role.Duty),
					fix:  forgetRole(role.Name),
				})
			}
			if len(role.Missing) > 0 {
				found = append(found, symptom{
					what: fmt.Sprintf("role %q, a %s, lacks %s", role.Name, role.Duty, listed(role.Missing)),
					fix:  grantRole(role),
				})
			}
		}
		return found, nil
	},
}

// listed names the first privileges.
func listed(privileges []domain.Privilege) string {
	const most = 5
	var first []string
	for _, privilege := range privileges[:min(most, len(privileges))] {
		first = append(first, privilege.String())
	}
	text := strings.Join(first, "; ")
	if more := len(privileges) - most; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}
