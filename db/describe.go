package db

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

const describeHeader = `-- The schema holdfast as the migrations leave it, for reviewers. "make generate" reads it
-- back from a migrated database; do not edit it. What depends on the day or on goose is left
-- out: the archive's day partitions and the table goose_version. Privileges are those of
-- PUBLIC only: the rest depends on who installed.
`

// describeSettings make the catalogs' functions write the same text on every server: names
// outside pg_catalog are qualified, and no literal depends on the session's formats.
const describeSettings = `
SELECT
    set_config('search_path', 'pg_catalog', true),
    set_config('quote_all_identifiers', 'off', true),
    set_config('standard_conforming_strings', 'on', true),
    set_config('DateStyle', 'ISO, YMD', true),
    set_config('IntervalStyle', 'postgres', true),
    set_config('TimeZone', 'UTC', true)`

// describeParts are the parts of the description, in an order in which it also runs as a
// script. Each is a query that returns the statements of one object a row.
var describeParts = []struct {
	name  string
	query string
}{
	{"the schema", schemaQuery},
	{"types", typesQuery},
	{"sequences", sequencesQuery},
	{"tables", ""}, // Composed by describeTables.
	{"views", viewsQuery},
	{"functions", functionsQuery},
}

// Describe returns the shape of the schema holdfast as SQL, read from the catalogs: the same
// text from PostgreSQL 14 to 18, so that two databases are alike when their texts are equal.
// Objects stand in the order of their names. Without the schema it is the header alone.
// Any role may ask. A view that reads a single table would be the first thing to differ
// between versions: from 16 on Postgres leaves the table's name off its columns.
func Describe(ctx context.Context, conn *pgx.Conn) (string, error) {
	var text strings.Builder
	text.WriteString(describeHeader)
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, conn, options, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, describeSettings); err != nil {
			return err
		}
		for _, part := range describeParts {
			objects, err := describePart(ctx, tx, part.query)
			if err != nil {
				return fmt.Errorf("%s: %w", part.name, err)
			}
			for _, object := range objects {
				text.WriteString("\n" + object + "\n")
			}
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("describe the schema: %w", err)
	}
	return text.String(), nil
}

func describePart(ctx context.Context, tx pgx.Tx, query string) ([]string, error) {
	if query == "" {
		return describeTables(ctx, tx)
	}
	rows, _ := tx.Query(ctx, query)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

const schemaQuery = `
SELECT 'CREATE SCHEMA holdfast;'
    || COALESCE(E'\nCOMMENT ON SCHEMA holdfast IS ' || quote_literal(obj_description(namespace.oid, 'pg_namespace')) || ';', '')
FROM pg_namespace AS namespace
WHERE namespace.nspname = 'holdfast'`

const typesQuery = `
SELECT 'CREATE TYPE ' || enum.oid::regtype || E' AS ENUM (\n    '
    || (
        SELECT string_agg(quote_literal(label.enumlabel), E',\n    ' ORDER BY label.enumsortorder)
        FROM pg_enum AS label
        WHERE label.enumtypid = enum.oid
    )
    || E'\n);'
    || COALESCE(E'\nCOMMENT ON TYPE ' || enum.oid::regtype || ' IS ' || quote_literal(obj_description(enum.oid, 'pg_type')) || ';', '')
FROM pg_type AS enum
WHERE enum.typnamespace = to_regnamespace('holdfast')
    AND enum.typtype = 'e'
ORDER BY enum.typname`

// A sequence that belongs to a column is left out: goose_version has one.
const sequencesQuery = `
SELECT format(
        E'CREATE SEQUENCE %s AS %s\n    START WITH %s INCREMENT BY %s MINVALUE %s MAXVALUE %s CACHE %s%s;',
        class.oid::regclass, numbers.seqtypid::regtype, numbers.seqstart, numbers.seqincrement, numbers.seqmin,
        numbers.seqmax, numbers.seqcache, CASE WHEN numbers.seqcycle THEN ' CYCLE' ELSE '' END
    )
    || COALESCE(E'\nCOMMENT ON SEQUENCE ' || class.oid::regclass || ' IS ' || quote_literal(obj_description(class.oid, 'pg_class')) || ';', '')
FROM pg_class AS class
JOIN pg_sequence AS numbers ON numbers.seqrelid = class.oid
WHERE class.relnamespace = to_regnamespace('holdfast')
    AND NOT EXISTS (
        SELECT FROM pg_depend AS owner
        WHERE owner.classid = 'pg_class'::regclass
            AND owner.objid = class.oid
            AND owner.deptype IN ('a', 'i')
    )
ORDER BY class.relname`

const viewsQuery = `
SELECT 'CREATE VIEW ' || class.oid::regclass || E' AS\n'
    || regexp_replace(regexp_replace(pg_get_viewdef(class.oid, 0), '^ *SELECT ', E'SELECT\n    ', 'gn'), '^ {1,3}(?=[A-Z])', '', 'gn')
    || COALESCE(E'\nCOMMENT ON VIEW ' || class.oid::regclass || ' IS ' || quote_literal(obj_description(class.oid, 'pg_class')) || ';', '')
    || COALESCE((
        SELECT string_agg(
            format(E'\nCOMMENT ON COLUMN %s.%I IS %L;', class.oid::regclass, attribute.attname, col_description(class.oid, attribute.attnum)),
            '' ORDER BY attribute.attnum
        )
        FROM pg_attribute AS attribute
        WHERE attribute.attrelid = class.oid
            AND col_description(class.oid, attribute.attnum) IS NOT NULL
    ), '')
FROM pg_class AS class
WHERE class.relnamespace = to_regnamespace('holdfast')
    AND class.relkind = 'v'
ORDER BY class.relname`

// Privileges: the owner's go without saying, and a function whose list is empty is open to
// everybody.
const functionsQuery = `
SELECT replace(rtrim(pg_get_functiondef(function.oid), E'\n'), 'CREATE OR REPLACE FUNCTION', 'CREATE FUNCTION') || ';'
    || COALESCE(E'\nCOMMENT ON FUNCTION ' || function.oid::regprocedure || ' IS ' || quote_literal(obj_description(function.oid, 'pg_proc')) || ';', '')
    || CASE
        WHEN EXISTS (
            SELECT FROM aclexplode(COALESCE(function.proacl, acldefault('f', function.proowner))) AS privilege
            WHERE privilege.grantee = 0
        ) THEN ''
        ELSE E'\nREVOKE ALL ON FUNCTION ' || function.oid::regprocedure || ' FROM PUBLIC;'
    END
FROM pg_proc AS function
WHERE function.pronamespace = to_regnamespace('holdfast')
ORDER BY function.proname, function.oid::regprocedure::text COLLATE "C"`
