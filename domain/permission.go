package domain

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast/queries"
)

// PermissionError says that a statement was refused because the role of the connection lacks a
// privilege, and who can grant it.
type PermissionError struct {
	Role       string   // "" when it is not known; a statement cannot be asked any more.
	Statement  string   // By its name in queries/.
	Object     string   // With its kind, such as table inbox.
	Privileges []string // What the statement needs there, of which one is missing at least.
	Duties     []Duty   // Those that may run the statement; none: only the schema's owner may.

	err error
}

// Error names all of it, and the command that grants what is missing.
func (e *PermissionError) Error() string {
	role, grantee := "the connection's role", "ROLE"
	if e.Role != "" {
		role, grantee = fmt.Sprintf("role %q", e.Role), e.Role
	}
	remedy := "only the owner of the schema may do this"
	if len(e.Duties) > 0 {
		remedy = fmt.Sprintf("the owner of the schema runs `holdfast roles grant %s %s`", joined(e.Duties, "|"), grantee)
	}
	lacks := "lacks "
	if len(e.Privileges) > 1 {
		lacks = "lacks one of "
	}
	return fmt.Sprintf("%s %s%s on %s, which %s needs: %s (%s)", role, lacks, strings.Join(e.Privileges, ", "), e.Object, e.Statement, remedy, e.err)
}

// Unwrap returns the database's error.
func (e *PermissionError) Unwrap() error { return e.err }

var (
	deniedObject    = regexp.MustCompile(`^permission denied for (table|view|sequence|function|schema) (\w+)$`)
	failedStatement = regexp.MustCompile(`\bquery ([A-Z]\w+): `)
)

// explainDenied says what a statement lacked that the database did not permit; the error itself
// where its text does not tell, as in another language of the server.
func explainDenied(err error, denied *pgconn.PgError) error {
	object, statement := deniedObject.FindStringSubmatch(denied.Message), failedStatement.FindStringSubmatch(err.Error())
	if object == nil || statement == nil {
		return err
	}
	return &PermissionError{
		Statement: statement[1], Object: object[1] + " " + object[2],
		Privileges: privilegesIn(queryTexts()[statement[1]], object[1], object[2]),
		Duties:     mayRun[statement[1]],
		err:        err,
	}
}

// privilegesIn are what a statement needs on an object, by its text.
func privilegesIn(text, kind, name string) []string {
	switch kind {
	case "schema", "sequence":
		return []string{"USAGE"}
	case "function":
		return []string{"EXECUTE"}
	}
	mentions := func(pattern string) bool {
		return regexp.MustCompile(pattern + ` holdfast\.` + regexp.QuoteMeta(name) + `\b`).MatchString(text)
	}
	inserts, reads := mentions("INSERT INTO"), mentions("(FROM|JOIN)")
	upserts := slices.ContainsFunc(strings.Split(text, "INSERT INTO"), func(insert string) bool {
		return strings.HasPrefix(insert, " holdfast."+name+" ") && conflictClause.MatchString(insert)
	})
	var needed []string
	for _, part := range []struct {
		privilege string
		needed    bool
	}{
		{"SELECT", reads || strings.Contains(text, "RETURNING")},
		{"INSERT", inserts},
		{"UPDATE", mentions("UPDATE") || upserts || reads && lockingClause.MatchString(text)},
		{"DELETE", mentions("DELETE FROM")},
	} {
		if part.needed {
			needed = append(needed, part.privilege)
		}
	}
	return needed
}

var (
	conflictClause = regexp.MustCompile(`\bDO UPDATE\b`)
	lockingClause  = regexp.MustCompile(`(?m)^ *FOR (NO KEY )?UPDATE\b`)
)

// queryTexts are the statements by name.
var queryTexts = sync.OnceValue(func() map[string]string {
	texts := map[string]string{}
	files, _ := fs.Glob(queries.Files, "*.sql")
	for _, file := range files {
		all, _ := fs.ReadFile(queries.Files, file)
		for _, query := range strings.Split(string(all), "-- name: ")[1:] {
			name, text, _ := strings.Cut(query, " ")
			texts[name] = text
		}
	}
	return texts
})

// NameRole adds to an error whose privilege is missing, if it is about one. db is what the
// statement was sent to.
func NameRole(db DBTX, err error) error {
	var lacking *PermissionError
	if !errors.As(err, &lacking) || lacking.Role != "" {
		return err
	}
	before := lacking.Error()
	lacking.Role = roleOf(db)
	// What wraps it has its text already.
	return &rewordedError{text: strings.Replace(err.Error(), before, lacking.Error(), 1), err: err}
}

type rewordedError struct {
	text string
	err  error
}

func (e *rewordedError) Error() string { return e.text }

func (e *rewordedError) Unwrap() error { return e.err }

// roleOf is the role with whose rights statements run, unless a session has set another since.
func roleOf(db DBTX) string {
	var config *pgx.ConnConfig
	switch db := db.(type) {
	case *pgxpool.Pool:
		config = db.Config().ConnConfig
	case *pgx.Conn:
		config = db.Config()
	case interface{ Conn() *pgx.Conn }:
		if conn := db.Conn(); conn != nil {
			config = conn.Config()
		}
	}
	if config == nil {
		return ""
	}
	if role := config.RuntimeParams["role"]; role != "" {
		return role
	}
	return config.User
}
