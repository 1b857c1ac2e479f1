package domain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-pg/holdfast/gen"
)

// Duty is what the members of a role do. What each may do for it stands in the database, in
// holdfast.duty_privileges().
type Duty string

// The duties.
const (
	DutyProducer Duty = "producer" // Adds jobs, from Go or with holdfast.enqueue.
	DutyWorker   Duty = "worker"   // Runs them and keeps house. Also adds jobs.
	DutyOperator Duty = "operator" // Looks, also at payloads, and mends.
	DutyViewer   Duty = "viewer"   // Looks at everything but payloads and headers.
)

// Duties are all of them.
func Duties() []Duty { return []Duty{DutyProducer, DutyWorker, DutyOperator, DutyViewer} }

// Check tells whether there is such a duty. InvalidError: there is none.
func (d Duty) Check() error {
	if !slices.Contains(Duties(), d) {
		return &InvalidError{Field: "duty", Reason: fmt.Sprintf("%q is none of %s", d, joined(Duties(), ", "))}
	}
	return nil
}

// ErrNoRole says that the server has no such role, or that it has no duty here.
var ErrNoRole = errors.New("no such role")

const (
	prefixLimit = 54   // Bytes: a role's name has 63 at most, and "_producer" is added.
	mostRoles   = 1000 // That are listed.
	mostMissing = 1000 // Privileges that are listed.
)

// Role is a role of the server that has a duty here.
type Role struct {
	Name    string      `json:"name"`
	Duty    Duty        `json:"duty"`
	Exists  bool        `json:"exists"` // On the server, to which roles belong.
	Missing []Privilege `json:"missing"`
}

// Privilege is a right to an object, or to some of its columns.
type Privilege struct {
	Privilege string   `json:"privilege"`
	Object    string   `json:"object"` // With its kind and its schema.
	Columns   []string `json:"columns"`
}

// String is the privilege as GRANT names it.
func (p Privilege) String() string {
	if len(p.Columns) > 0 {
		return fmt.Sprintf("%s (%s) on %s", p.Privilege, strings.Join(p.Columns, ", "), p.Object)
	}
	return p.Privilege + " on " + p.Object
}

// ListRoles lists the roles that have a duty here, and what each lacks of what its duty needs.
func ListRoles(ctx context.Context, db DBTX) ([]Role, error) {
	rows, err := gen.New().ListRoles(ctx, db, mostRoles)
	if err != nil {
		return nil, fmt.Errorf("list the roles: %w", NameRole(db, explain(err)))
	}
	lacks, err := gen.New().ListMissingPrivileges(ctx, db, mostMissing)
	if err != nil {
		return nil, fmt.Errorf("list what roles lack: %w", NameRole(db, explain(err)))
	}
	missing := map[string][]Privilege{}
	for _, lack := range lacks {
		missing[lack.Name] = append(missing[lack.Name], Privilege{
			Privilege: lack.Privilege, Object: strings.ToLower(lack.ObjectType) + " " + lack.Object, Columns: lack.Columns,
		})
	}
	roles := make([]Role, len(rows))
	for i, row := range rows {
		roles[i] = Role{Name: row.Name, Duty: Duty(row.Duty), Exists: row.ExistsOnServer, Missing: missing[row.Name]}
		if roles[i].Missing == nil {
			roles[i].Missing = []Privilege{}
		}
	}
	return roles, nil
}

// CreateRoles makes a role for each duty, PREFIX_producer and so on, which cannot log in, unless
// it exists, and gives it the duty. It needs the right to create roles; who has it may also make
// them, and have GrantRole do the rest. InvalidError: the prefix is too long. PermissionError: the role of the connection may not.
func CreateRoles(ctx context.Context, db DBTX, prefix string) (created int, err error) {
	if err := CheckRolePrefix(prefix); err != nil {
		return 0, err
	}
	n, err := gen.New().CreateRoles(ctx, db, prefix)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == insufficientPrivilege && strings.Contains(refused.Message, "create role") {
		return 0, fmt.Errorf("create roles: role %q may not: let somebody with CREATEROLE make them, then run `holdfast roles grant DUTY ROLE` for each: %w", roleOf(db), err)
	}
	if err != nil {
		return 0, fmt.Errorf("create roles: %w", NameRole(db, explain(err)))
	}
	return int(n), nil
}

// CheckRolePrefix tells whether names of roles can begin so. InvalidError: they cannot.
func CheckRolePrefix(prefix string) error {
	if err := checkName("prefix", prefix); err != nil {
		return err
	}
	if len(prefix) > prefixLimit {
		return &InvalidError{Field: "prefix", Reason: fmt.Sprintf("has %d bytes, %d at most", len(prefix), prefixLimit)}
	}
	return nil
}

// GrantRole gives a role of the server a duty: it can do then what the duty needs, and nothing
// else in the schema, whatever it could before. A role has one duty. The next migrations grant
// what the duty comes to need. InvalidError: no such duty. ErrNoRole: the server has no such
// role. PermissionError: the caller does not own the schema.
func GrantRole(ctx context.Context, db DBTX, duty Duty, role string) (privileges int, err error) {
	if err := duty.Check(); err != nil {
		return 0, err
	}
	n, err := gen.New().GrantRole(ctx, db, gen.GrantRoleParams{Duty: string(duty), RoleName: role})
	if errors.Is(err, pgx.ErrNoRows) {
		err = fmt.Errorf("%w on this server: make it first, with CREATE ROLE", ErrNoRole)
	}
	if err != nil {
		return 0, fmt.Errorf("make role %q a %s: %w", role, duty, NameRole(db, explain(err)))
	}
	return int(n), nil
}

// GrantRoles grants again to every role what its duty needs, and tells how many there are.
func GrantRoles(ctx context.Context, db DBTX) (int, error) {
	n, err := gen.New().GrantRoles(ctx, db)
	if err != nil {
		return 0, fmt.Errorf("grant to all roles again: %w", NameRole(db, explain(err)))
	}
	return int(n), nil
}

// RevokeRole takes from a role everything that it may do in the schema. The role itself stays,
// and can be dropped then. ErrNoRole: it has no duty here.
func RevokeRole(ctx context.Context, db DBTX, role string) error {
	known, err := gen.New().RevokeRole(ctx, db, role)
	if err == nil && !known {
		err = fmt.Errorf("%w that has a duty: `holdfast roles list` names them", ErrNoRole)
	}
	if err != nil {
		return fmt.Errorf("revoke from role %q: %w", role, NameRole(db, explain(err)))
	}
	return nil
}

func joined[T ~string](words []T, separator string) string {
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = string(word)
	}
	return strings.Join(texts, separator)
}
