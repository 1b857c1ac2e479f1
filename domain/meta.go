package domain

import (
	"context"
	"fmt"

	"github.com/holdfast-pg/holdfast/gen"
)

// SchemaVersion is the migration that this build's statements were written for.
const SchemaVersion = 12

// Meta are the facts about an installation.
type Meta struct {
	BucketCount   int   // How many buckets partition keys hash into.
	Epoch         int64 // The high part of every lease generation.
	SchemaVersion int   // The migration the schema stands at.
	OldestBinary  int   // The lowest SchemaVersion of a program that may run on it.
	Standby       bool  // The server cannot be written to.
}

// SchemaError says that the schema and this program do not go together.
type SchemaError struct {
	Schema int    // The migration the schema stands at.
	Binary int    // The migration this program was built for.
	Remedy string // What to do, a sentence.
}

// Error names both versions and the remedy.
func (e *SchemaError) Error() string {
	return fmt.Sprintf("the schema stands at version %d and this program was built for version %d: %s", e.Schema, e.Binary, e.Remedy)
}

// ReadMeta reads the facts about the installation and checks that this program may run on
// it. Errors: ErrNotMigrated without a schema, SchemaError when it is older than this
// program needs, or so new that this program could do harm.
func ReadMeta(ctx context.Context, db DBTX) (Meta, error) {
	row, err := gen.New().GetMeta(ctx, db)
	if err != nil {
		return Meta{}, fmt.Errorf("read the schema's version: %w", NameRole(db, explain(err)))
	}
	meta := Meta{
		BucketCount:   int(row.BucketCount),
		Epoch:         row.Epoch,
		SchemaVersion: int(row.SchemaVersion),
		OldestBinary:  int(row.OldestBinary),
		Standby:       row.Standby,
	}
	return meta, meta.check(SchemaVersion)
}

func (m Meta) check(binary int) error {
	if m.SchemaVersion < binary {
		return &SchemaError{Schema: m.SchemaVersion, Binary: binary, Remedy: "run `holdfast migrate up` with this program's version"}
	}
	if m.OldestBinary > binary {
		return &SchemaError{
			Schema: m.SchemaVersion, Binary: binary,
			Remedy: fmt.Sprintf("install a program built for version %d or later, or run `holdfast migrate down` with the program that migrated it", m.OldestBinary),
		}
	}
	return nil
}

// Open reads and checks the installation, before anything else. Errors: those of ReadMeta,
// and ErrStandby.
func (q *Queue) Open(ctx context.Context) (Meta, error) {
	meta, err := ReadMeta(ctx, q.pool)
	if err == nil && meta.Standby {
		err = ErrStandby
	}
	return meta, err
}
