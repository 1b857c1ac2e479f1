// Package doctor tells whether a database is fit for holdfast: each check says what it found,
// why that matters, and the SQL or the flag that mends it. It changes nothing.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Options says what counts as a finding. The zero value of each is its default.
type Options struct {
	// Checks are the ids of those to run. Default: all.
	Checks []string

	// DirectURL is the address that workers listen on, as their own flag says. Default: the
	// pool's.
	DirectURL string

	// HeldFor is how long a transaction may hold vacuum back. Default: 5 minutes.
	HeldFor time.Duration

	// Transactions is how far back a slot or a standby may hold vacuum. Default: 1,000,000.
	Transactions int

	// DeadRows is how many dead rows the inbox may have without a vacuum of the last ten
	// minutes. Default: 50,000.
	DeadRows int64

	// Bloat is the size, in bytes, up to which it does not matter how much of the inbox is
	// empty. Default: 1 GB.
	Bloat int64

	// Now is this machine's clock. Default: time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	o.HeldFor = cmp.Or(o.HeldFor, 5*time.Minute)
	o.Transactions = cmp.Or(o.Transactions, 1_000_000)
	o.DeadRows = cmp.Or(o.DeadRows, 50_000)
	o.Bloat = cmp.Or(o.Bloat, 1<<30)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Severity says how bad a finding is.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // A promise is broken, or work does not get done.
	Warning Severity = "warning" // It will be, sooner or later, or work gets done slowly.
)

// Finding is one thing that is wrong.
type Finding struct {
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	What     string   `json:"what"`
	Why      string   `json:"why"`
	Fix      string   `json:"fix"` // SQL, a flag or a command.
}

// Result is what became of one check.
type Result struct {
	Check    string `json:"check"`
	Examines string `json:"examines"`
	Findings int    `json:"findings"`
	Skipped  string `json:"skipped,omitempty"` // Why it did not run.
}

// Report is what an examination found, and which checks there are.
type Report struct {
	Findings []Finding `json:"findings"`
	Checks   []Result  `json:"checks"`
}

// check is one question to the database.
type check struct {
	id       string
	examines string
	why      string
	severity Severity
	schema   bool // It reads the tables, so the schema must be this program's.
	workers  bool // It asks for the rights of a worker's role, and does not run as another.
	find     func(ctx context.Context, p *patient) ([]symptom, error)
}

// symptom is what a check finds, and what mends it.
type symptom struct {
	what string
	fix  string
}

// mostSymptoms is how many findings of one check are listed.
const mostSymptoms = 10

// checks returns them all, in the order in which they run.
func checks() []check {
	return []check{
		serverVersion, writable, schemaVersion, schemaDrift, roleGrants, planContract,
		notifications, connections, clockSkew,
		durability, timeouts, isolation,
		vacuumHorizon, autovacuum, deadRows, bloat,
		unservedQueues, orphanBuckets, leaseLength, expiredLeases, completedRows, deadKeys,
	}
}

// Checks returns the ids of all checks, in the order in which they run.
func Checks() []string {
	all := checks()
	ids := make([]string, len(all))
	for i, check := range all {
		ids[i] = check.id
	}
	return ids
}

// Examine runs the checks on a database. Errors: the database no longer answers, or the
// context has ended. What a check may not read is a finding.
func Examine(ctx context.Context, pool *pgxpool.Pool, options Options) (Report, error) {
	p, err := newPatient(ctx, pool, options.withDefaults())
	if err != nil {
		return Report{}, err
	}
	report := Report{Findings: []Finding{}}
	for _, check := range checks() {
		if len(options.Checks) > 0 && !slices.Contains(options.Checks, check.id) {
			continue
		}
		result := Result{Check: check.id, Examines: check.examines, Skipped: p.skips(check)}
		if result.Skipped == "" {
			symptoms, err := check.find(ctx, p)
			switch {
			case check.workers && isDenied(err):
				result.Skipped, err = "only a worker's role may ask this", nil
			case err != nil:
				symptoms, err = unanswered(err)
			}
			if err != nil {
				return Report{}, fmt.Errorf("check %s: %w", check.id, err)
			}
			result.Findings = len(symptoms)
			report.Findings = append(report.Findings, check.findings(symptoms)...)
			p.found[check.id] = len(symptoms) > 0
		}
		report.Checks = append(report.Checks, result)
	}
	return report, nil
}

// unanswered makes a symptom of what the server refuses to tell.
func unanswered(err error) ([]symptom, error) {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code == queryCanceled {
		return nil, err
	}
	return []symptom{{
		what: "cannot be checked: " + refused.Message + " (SQLSTATE " + refused.Code + ")",
		fix:  "run holdfast doctor as the role of the workers, or as one that may read what they read",
	}}, nil
}

const (
	queryCanceled = "57014"
	denied        = "42501"
)

func isDenied(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == denied
}

// findings are the first symptoms of a check, and how many there are beside them.
func (c check) findings(symptoms []symptom) []Finding {
	var found []Finding
	for i, symptom := range symptoms {
		what := symptom.what
		if more := len(symptoms) - mostSymptoms; i == mostSymptoms-1 && more > 0 {
			what = fmt.Sprintf("%s (and %d more like this)", what, more)
		}
		if i < mostSymptoms {
			found = append(found, Finding{Check: c.id, Severity: c.severity, What: what, Why: c.why, Fix: symptom.fix})
		}
	}
	return found
}
