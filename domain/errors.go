package domain

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// The errors that callers tell apart, with errors.Is.
var (
	// ErrLeaseLost says that a claim is over: its lease ended and the job was reclaimed, or
	// a person released it. Nothing was written. It is the cause of the handler's context
	// when the worker learns of it first.
	ErrLeaseLost = errors.New("lease lost: another claim may hold the job")

	// ErrFenced says that a guarded resource has seen a higher fence token. Returned from a
	// handler it retries the job under a new claim without spending the attempt.
	ErrFenced = errors.New("fenced: the resource has seen a higher token")

	// ErrRefused says that the database refuses to record what a settlement says, and will
	// again: a constraint or a trigger is in the way. Nothing was written.
	ErrRefused = errors.New("the database refuses to record this")

	// ErrStopping is the cause of a handler's context when the worker's drain deadline passed.
	ErrStopping = errors.New("the worker is stopping")

	// ErrNotFound says that there is no such job.
	ErrNotFound = errors.New("no such job: it never was, was purged or dropped, or its retention has passed")

	// ErrUnknownQueue says that there is no such queue. From a call that creates queues it
	// means that another transaction has created it and this one cannot see it: retry the
	// transaction.
	ErrUnknownQueue = errors.New("no such queue")

	// ErrWorkerExists says that the registry holds another worker of this id.
	ErrWorkerExists = errors.New("a worker with this id is registered already, and an id is for one worker, once: let Config.NewID return another each time")

	// ErrWorkerUnknown says that the registry does not hold the worker.
	ErrWorkerUnknown = errors.New("the registry does not know this worker")

	// ErrNoNotifications says that a listening session does not hear what others send, as
	// behind a pooler in transaction mode. Jobs are found by polling all the same.
	ErrNoNotifications = errors.New("notifications do not arrive: DirectURL can name an address without a pooler to listen on")

	// ErrStandby says that the server is a standby, which cannot be written to.
	ErrStandby = errors.New("the server is a standby, and jobs are claimed on the primary only: name the primary, or add target_session_attrs=read-write to several hosts")

	// ErrReadOnly says that the transaction cannot write: the server is a standby, or the
	// transaction or its role was made read-only.
	ErrReadOnly = errors.New("the transaction is read-only: use the primary, with several hosts add target_session_attrs=read-write, and a transaction that may write")

	// ErrNotMigrated says that the database has no Holdfast schema.
	ErrNotMigrated = errors.New("the database has no holdfast schema: run `holdfast migrate up`")
)

// errUnseenQueue is what a call that creates queues says of one that it cannot see.
var errUnseenQueue = fmt.Errorf("%w that this transaction can see: retry it", ErrUnknownQueue)

// InvalidError says which argument was refused and why. Nothing was sent to the database, or
// the database refused it.
type InvalidError struct {
	Field  string
	Reason string
}

// Error names the field and the reason.
func (e *InvalidError) Error() string {
	return e.Field + ": " + e.Reason
}

// limitNames says in words what each CHECK of the schema limits.
var limitNames = map[string]InvalidError{
	"inbox_payload_size": {Field: "payload", Reason: "is over the limit of 256 KB as stored"},
	"inbox_headers_size": {Field: "headers", Reason: "are over the limit of 8 KB as stored"},
	"inbox_kind_length":  {Field: "kind", Reason: "must have 1 to 200 characters"},
	"queues_name_length": {Field: "queue", Reason: "must have 1 to 200 characters"},

	"queues_max_attempts_positive":  {Field: "max attempts", Reason: "must be 1 at least"},
	"queues_keep_within_retention":  {Field: "keep for", Reason: "must not be longer than the retention: change both together"},
	"queues_dedupe_window_positive": {Field: "dedupe window", Reason: "must be positive"},

	"handled_key_length":   {Field: "key", Reason: "must have 1 to 200 characters"},
	"handled_scope_length": {Field: "name", Reason: "must have 1 to 200 characters"},
}

// SQLSTATEs that explain gives words to.
const (
	undefinedTable        = "42P01"
	undefinedFunction     = "42883"
	invalidSchemaName     = "3F000"
	insufficientPrivilege = "42501"
	readOnly              = "25006"
	checkViolation        = "23514"
	notNullViolation      = "23502"
	dataException         = "22" // The class: no such number, time or text.
)

// explain adds to a database error what the caller can do about it.
func explain(err error) error {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return err
	}
	switch pgErr.Code {
	case undefinedTable, undefinedFunction, invalidSchemaName:
		return fmt.Errorf("%w (%w)", ErrNotMigrated, err)
	case insufficientPrivilege:
		return explainDenied(err, pgErr)
	case readOnly:
		return fmt.Errorf("%w (%w)", ErrReadOnly, err)
	case checkViolation:
		if limit, known := limitNames[pgErr.ConstraintName]; known {
			return &limit
		}
	}
	if strings.HasPrefix(pgErr.Code, dataException) {
		return &InvalidError{Field: "argument", Reason: "Postgres cannot store it: " + pgErr.Message}
	}
	return err
}

// isAboutRow tells whether the database refused what a statement says of some row, so that it
// may take the same of others: bad data, a violated constraint, or what a trigger raised.
func isAboutRow(err error) bool {
	var invalid *InvalidError
	var pgErr *pgconn.PgError
	return errors.As(err, &invalid) ||
		errors.As(err, &pgErr) && slices.Contains([]string{"23", "P0"}, pgErr.Code[:min(2, len(pgErr.Code))])
}

// IsTemporary tells whether the same call may succeed later without anybody doing anything:
// the server cannot be reached, is starting or stopping, is out of connections, or broke a
// deadlock. A wrong password, a missing table or a bad argument is not temporary.
func IsTemporary(err error) bool {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		// Connection, rollback, resources, operator intervention.
		return slices.Contains([]string{"08", "40", "53", "57"}, pgErr.Code[:min(2, len(pgErr.Code))])
	}
	var invalid *InvalidError
	var schema *SchemaError
	return !errors.As(err, &invalid) && !errors.As(err, &schema) &&
		!errors.Is(err, ErrNotMigrated) && !errors.Is(err, ErrStandby) && !errors.Is(err, ErrWorkerExists) && !errors.Is(err, ErrUnknownQueue)
}
