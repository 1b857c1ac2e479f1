package domain

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func pgError(code, constraint string) error {
	return fmt.Errorf("query X: %w", &pgconn.PgError{Code: code, ConstraintName: constraint})
}

func TestExplain_SaysWhatTheCallerCanDo(t *testing.T) {
	t.Parallel()
	for _, code := range []string{undefinedTable, undefinedFunction, invalidSchemaName} {
		err := explain(pgError(code, ""))
		var cause *pgconn.PgError
		if !errors.Is(err, ErrNotMigrated) || !errors.As(err, &cause) {
			t.Errorf("%s: %v, want ErrNotMigrated with its cause", code, err)
		}
	}
	if err := explain(pgError(readOnly, "")); !errors.Is(err, ErrReadOnly) {
		t.Errorf("%s: %v, want ErrReadOnly", readOnly, err)
	}
	for constraint, limit := range limitNames {
		var invalid *InvalidError
		if err := explain(pgError(checkViolation, constraint)); !errors.As(err, &invalid) || *invalid != limit {
			t.Errorf("%s: %v", constraint, err)
		}
	}
	for _, err := range []error{nil, io.EOF, pgError(checkViolation, "inbox_claim_is_whole"), pgError("40001", "")} {
		if got := explain(err); got != err { //nolint:errorlint // The very same error must come back.
			t.Errorf("%v became %v", err, got)
		}
	}
}

func TestIsTemporary_TellsWhatPassesByItself(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err  error
		want bool
	}{
		"no connection":         {fmt.Errorf("dial: %w", io.ErrUnexpectedEOF), true},
		"connection failure":    {pgError("08006", ""), true},
		"deadlock":              {pgError("40P01", ""), true},
		"too many connections":  {pgError("53300", ""), true},
		"shutting down":         {pgError("57P01", ""), true},
		"starting up":           {pgError("57P03", ""), true},
		"wrong password":        {pgError("28P01", ""), false},
		"no such database":      {pgError("3D000", ""), false},
		"a standby":             {explain(pgError(readOnly, "")), false},
		"no such table":         {explain(pgError(undefinedTable, "")), false},
		"a bad argument":        {fmt.Errorf("enqueue: %w", &InvalidError{Field: "key"}), false},
		"a schema that is old":  {fmt.Errorf("open: %w", &SchemaError{}), false},
		"a worker of this name": {fmt.Errorf("join: %w", ErrWorkerExists), false},
	}
	for name, test := range tests {
		if got := IsTemporary(test.err); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
