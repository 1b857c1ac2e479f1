package plans

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Beginner is a *pgxpool.Pool, a *pgx.Conn or a pgx.Tx.
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Violation is one way in which a plan breaks the contract.
type Violation struct {
	Statement string
	SetSize   int    // 0 for a statement without a set.
	Generic   bool   // The plan is the one for all arguments, which a prepared statement may get, and not that for its own.
	Says      string // In words, such as "reads all of inbox".
	Plan      string // An outline of the plan, a line for each node.
}

// String returns the violation in one line.
func (v Violation) String() string {
	text := v.Statement
	if v.SetSize > 0 {
		text += fmt.Sprintf(" for %d", v.SetSize)
	}
	if v.Generic {
		text += ", prepared,"
	}
	return text + " " + v.Says
}

// Check asks the server how it would run the statement for a set of the size, as the product
// sends it, and tells what about that breaks the contract. Nothing is run: it takes the
// locks of planning, and rolls back what it begins. It needs the rights of a worker.
func Check(ctx context.Context, db Beginner, statement Statement, setSize int) ([]Violation, error) {
	var found []Violation
	for _, generic := range statement.Sent.generic() {
		plan, err := inTransaction(ctx, db, func(tx pgx.Tx) (node, error) {
			return explain(ctx, tx, statement, setSize, generic)
		})
		if err != nil {
			return found, fmt.Errorf("plan %s: %w", statement.Name, err)
		}
		for _, says := range broken(statement, setSize, plan) {
			violation := Violation{Statement: statement.Name, Generic: generic && statement.Sent == Cached, Says: says, Plan: plan.outline()}
			if statement.Set {
				violation.SetSize = setSize
			}
			found = append(found, violation)
		}
	}
	return found, nil
}

// inTransaction returns what do returns, and leaves nothing behind.
func inTransaction(ctx context.Context, db Beginner, do func(tx pgx.Tx) (node, error)) (node, error) {
	tx, err := db.Begin(ctx)
	if err != nil {
		return node{}, err
	}
	plan, err := do(tx)
	if rollback := tx.Rollback(ctx); err == nil {
		err = rollback
	}
	return plan, err
}

func explain(ctx context.Context, tx pgx.Tx, statement Statement, size int, generic bool) (node, error) {
	if err := prepareSession(ctx, tx, statement); err != nil {
		return node{}, err
	}
	recorded, err := record(ctx, statement, size)
	if err != nil {
		return node{}, err
	}
	if generic {
		return explainGeneric(ctx, tx, recorded)
	}
	explained, err := run(ctx, tx, "FORMAT JSON", recorded.sql, recorded.args...)
	return explained.Plan, err
}

// prepareSession makes the settings that the product makes, until the transaction ends.
func prepareSession(ctx context.Context, tx pgx.Tx, statement Statement) error {
	switch statement.Sent {
	case ByIndex:
		return queries.PlanByIndex(ctx, tx)
	case InOrder:
		return queries.PlanInOrder(ctx, tx)
	default:
		return nil
	}
}

// explainGeneric plans for arguments that are not known, as the server does with a prepared
// statement behind PlanByIndex, and may do with any other from its sixth run. EXPLAIN
// (GENERIC_PLAN) needs PostgreSQL 16.
func explainGeneric(ctx context.Context, tx pgx.Tx, recorded recorder) (node, error) {
	if err := queries.PlanForAnyArguments(ctx, tx); err != nil {
		return node{}, err
	}
	answer, err := prepared(ctx, tx, recorded, func(tx pgx.Tx) (explained, error) {
		unknown := strings.Join(repeat(len(recorded.args), "NULL"), ", ")
		return run(ctx, tx, "FORMAT JSON", "EXECUTE holdfast_plan ("+unknown+")")
	})
	return answer.Plan, err
}

// prepared returns what do returns, which may EXECUTE the statement as holdfast_plan.
func prepared(ctx context.Context, tx pgx.Tx, recorded recorder, do func(tx pgx.Tx) (explained, error)) (explained, error) {
	if _, err := tx.Exec(ctx, "PREPARE holdfast_plan AS "+recorded.sql); err != nil {
		return explained{}, err
	}
	// A savepoint, because the rollback of the transaction would keep what was prepared.
	var answer explained
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) (err error) {
		answer, err = do(tx)
		return err
	})
	_, dropped := tx.Exec(ctx, "DEALLOCATE holdfast_plan")
	return answer, errors.Join(err, dropped)
}

// explained is what EXPLAIN (FORMAT JSON) answers.
type explained struct {
	Plan      node
	Planning  float64 `json:"Planning Time"`  // Milliseconds, as the other.
	Execution float64 `json:"Execution Time"` // Only with ANALYZE, as the other.
}

func run(ctx context.Context, tx pgx.Tx, options, sql string, args ...any) (explained, error) {
	// The server tells the types of the arguments, as it does in the product.
	return ask(ctx, tx, options, sql, append([]any{pgx.QueryExecModeDescribeExec}, args...))
}

// ask explains a statement; the first argument is how it is sent.
func ask(ctx context.Context, tx pgx.Tx, options, sql string, arguments []any) (explained, error) {
	var document []byte
	if err := tx.QueryRow(ctx, "EXPLAIN ("+options+") "+sql, arguments...).Scan(&document); err != nil {
		return explained{}, err
	}
	var answer []explained
	if err := json.Unmarshal(document, &answer); err != nil {
		return explained{}, fmt.Errorf("read the plan: %w", err)
	}
	if len(answer) != 1 {
		return explained{}, fmt.Errorf("read the plan: there are %d", len(answer))
	}
	return answer[0], nil
}

// Measurement is what one run of a statement took on the server.
type Measurement struct {
	Planning  time.Duration // Of a statement that stays prepared: reading its arguments from text.
	Execution time.Duration
	Buffers   int64 // Shared buffers that it touched, cached or not, those of planning apart.
	Rows      int64 // What it returned.
}

// Total is the server's time.
func (m Measurement) Total() time.Duration { return m.Planning + m.Execution }

// Measure runs the statement for a set of the size, as the product sends it, and returns what
// it took. What it did, and the product's settings, stay until the transaction ends: roll it
// back. The samples of a settlement or a renewal are no jobs, so those touch nothing; a claim
// takes the caller's request, see ClaimJobs.
func Measure(ctx context.Context, tx pgx.Tx, statement Statement, setSize int) (Measurement, error) {
	measured, err := measure(ctx, tx, statement, setSize)
	if err != nil {
		return Measurement{}, fmt.Errorf("measure %s: %w", statement.Name, err)
	}
	return Measurement{
		Planning:  milliseconds(measured.Planning),
		Execution: milliseconds(measured.Execution),
		Buffers:   measured.Plan.Hit + measured.Plan.Read,
		Rows:      int64(measured.Plan.ActualRows),
	}, nil
}

const analyze = "ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON"

func measure(ctx context.Context, tx pgx.Tx, statement Statement, size int) (explained, error) {
	if err := prepareSession(ctx, tx, statement); err != nil {
		return explained{}, err
	}
	recorded, err := record(ctx, statement, size)
	if err != nil {
		return explained{}, err
	}
	if statement.Sent != ByIndex {
		return run(ctx, tx, analyze, recorded.sql, recorded.args...)
	}
	return prepared(ctx, tx, recorded, func(tx pgx.Tx) (explained, error) {
		// EXECUTE takes no parameters of the protocol, so the driver writes them into the text.
		call := "EXECUTE holdfast_plan (" + strings.Join(places(len(recorded.args)), ", ") + ")"
		arguments := append([]any{pgx.QueryExecModeSimpleProtocol}, recorded.args...)
		// The plan is made at the first call, and kept.
		if _, err := ask(ctx, tx, "FORMAT JSON", call, arguments); err != nil {
			return explained{}, err
		}
		return ask(ctx, tx, analyze, call, arguments)
	})
}

// places are the parameters of a statement: $1, $2 and so on.
func places(parameters int) []string {
	all := make([]string, parameters)
	for i := range all {
		all[i] = "$" + strconv.Itoa(i+1)
	}
	return all
}

func milliseconds(f float64) time.Duration {
	return time.Duration(f * float64(time.Millisecond))
}
