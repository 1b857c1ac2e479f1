package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-pg/holdfast/db"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/plans"
)

var schemaVersion = check{
	id:       "schema_version",
	examines: "that the schema is there and of this program's version",
	why:      "A program meets tables that it does not know, or misses some: it refuses to start, or an older one stays behind.",
	severity: Error,
	find: func(_ context.Context, p *patient) ([]symptom, error) {
		var schema *domain.SchemaError
		switch {
		case errors.Is(p.unfit, domain.ErrNotMigrated):
			return []symptom{{what: "the database has no holdfast schema", fix: "holdfast migrate up"}}, nil
		case errors.As(p.unfit, &schema) && schema.Schema < schema.Binary:
			return []symptom{{
				what: fmt.Sprintf("the schema stands at version %d, and this program was built for version %d", schema.Schema, schema.Binary),
				fix:  "holdfast migrate up",
			}}, nil
		case errors.As(p.unfit, &schema):
			return []symptom{{
				what: fmt.Sprintf("the schema stands at version %d, and this program was built for version %d", schema.Schema, schema.Binary),
				fix:  schema.Remedy,
			}}, nil
		case p.unfit != nil:
			return nil, p.unfit
		case p.meta.SchemaVersion > domain.SchemaVersion:
			return []symptom{{
				what: fmt.Sprintf("the schema stands at version %d, later than this program's %d, which may still run on it", p.meta.SchemaVersion, domain.SchemaVersion),
				fix:  fmt.Sprintf("install a program built for version %d", p.meta.SchemaVersion),
			}}, nil
		}
		return nil, nil
	},
}

var schemaDrift = check{
	id:       "schema_drift",
	examines: "that tables, columns, constraints, indexes, triggers, functions and types are those of the migrations",
	why:      "Each is there for a statement or a promise: without an index a claim reads the whole table, without a constraint a wrong row gets in, and one more index makes every claim dearer.",
	severity: Error,
	schema:   true,
	find: func(ctx context.Context, p *patient) ([]symptom, error) {
		conn, err := p.pool.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		defer conn.Release()
		differences, err := db.Drift(ctx, conn.Conn())
		if err != nil {
			return nil, err
		}
		found := make([]symptom, len(differences))
		for i, difference := range differences {
			found[i] = symptom{what: differs(difference), fix: cmp.Or(difference.Mend, byHand(difference))}
		}
		return found, nil
	},
}

func differs(difference db.Difference) string {
	switch {
	case difference.Actual == "":
		return difference.Object + " is missing"
	case difference.Expected == "":
		return difference.Object + " is not of the migrations"
	case strings.HasPrefix(difference.Actual, "-- Not valid"):
		return difference.Object + " is not valid: it costs, and no query uses it"
	default:
		return fmt.Sprintf("%s is %s; the migrations make it %s", difference.Object, shorten(difference.Actual), shorten(difference.Expected))
	}
}

// shorten keeps a definition within a line.
func shorten(definition string) string {
	const most = 160
	line := []rune(strings.Join(strings.Fields(definition), " "))
	if len(line) > most {
		return string(line[:most]) + " …"
	}
	return string(line)
}

// byHand is for what cannot be mended without a decision about data.
func byHand(difference db.Difference) string {
	if difference.Expected == "" {
		return "take it away, or keep it and bear with this finding: " + difference.Object + " is not holdfast's"
	}
	return "make it what `holdfast migrate sql` prints: rows may have to be written anew or restored, so a person has to decide"
}

// planSets are how many members a statement's set has, for which its plan is looked at.
var planSets = []int{1, 25, 500}

var planContract = check{
	id:       "plan_contract",
	examines: "that the server finds the rows of every hot statement by the index meant for it",
	why:      "Another plan costs as much as the table is long: claims and settlements take seconds where they took milliseconds.",
	severity: Error,
	schema:   true,
	workers:  true,
	find: func(ctx context.Context, p *patient) ([]symptom, error) {
		var violations []plans.Violation
		for _, statement := range plans.Contract() {
			sets := planSets
			if !statement.Set {
				sets = planSets[:1]
			}
			for _, set := range sets {
				broken, err := plans.Check(ctx, p.pool, statement, set)
				if err != nil {
					return nil, err
				}
				violations = append(violations, broken...)
			}
		}
		if len(violations) == 0 {
			return nil, nil
		}
		return []symptom{{what: broken(violations), fix: p.mendPlans()}}, nil
	},
}

// broken lists the first violations, the first one of each statement.
func broken(violations []plans.Violation) string {
	const most = 5
	var first []string
	statements := map[string]bool{}
	for _, violation := range violations {
		if !statements[violation.Statement] && len(first) < most {
			first = append(first, violation.String())
		}
		statements[violation.Statement] = true
	}
	text := strings.Join(first, "; ")
	if more := len(statements) - len(first); more > 0 {
		text += fmt.Sprintf("; and %d more statements", more)
	}
	return text
}

// mendPlans gives back what a setting takes from the planner, else statistics.
func (p *patient) mendPlans() string {
	var changes []string
	for _, name := range planning {
		if p.setting(name) == "off" {
			changes = append(changes, p.forRole(name, "on"))
		}
	}
	if len(changes) > 0 {
		return strings.Join(changes, "\n")
	}
	return takeStatistics
}
