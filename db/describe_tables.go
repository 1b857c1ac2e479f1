package db

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
)

// describeTables returns the statements of each table: the table with its columns and
// constraints, the comments on it, its indexes, and its triggers.
func describeTables(ctx context.Context, tx pgx.Tx) ([]string, error) {
	rows, _ := tx.Query(ctx, tablesQuery)
	tables, err := pgx.CollectRows(rows, pgx.RowToStructByPos[table])
	if err != nil {
		return nil, err
	}
	lines, err := linesByTable(ctx, tx, columnsQuery, constraintsQuery)
	if err != nil {
		return nil, err
	}
	statements, err := linesByTable(ctx, tx, tableCommentsQuery, indexesQuery, triggersQuery)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(tables))
	for i, table := range tables {
		body := ""
		if columns := lines[table.Name]; len(columns) > 0 {
			body = " (\n    " + strings.Join(columns, ",\n    ") + "\n)"
		}
		texts[i] = strings.Join(append([]string{table.Head + body + table.Tail + ";"}, statements[table.Name]...), "\n")
	}
	return texts, nil
}

// table is what of a CREATE TABLE stands before and after its columns.
type table struct {
	Name string
	Head string
	Tail string
}

// linesByTable collects what queries return as pairs of a table's name and a text.
func linesByTable(ctx context.Context, tx pgx.Tx, queries ...string) (map[string][]string, error) {
	lines := map[string][]string{}
	for _, query := range queries {
		rows, _ := tx.Query(ctx, query)
		var name, line string
		_, err := pgx.ForEachRow(rows, []any{&name, &line}, func() error {
			lines[name] = append(lines[name], line)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// ours are the tables that the description shows, under the name class.
const ours = `class.relnamespace = to_regnamespace('holdfast')
    AND class.relkind IN ('r', 'p')
    AND class.relname <> 'goose_version'
    AND class.relname !~ '^inbox_archive_[0-9]{8}$'`

const tablesQuery = `
SELECT
    class.relname,
    'CREATE ' || CASE class.relpersistence WHEN 'u' THEN 'UNLOGGED ' ELSE '' END || 'TABLE ' || class.oid::regclass
        || COALESCE(E'\n    PARTITION OF ' || inherits.inhparent::regclass || ' ' || pg_get_expr(class.relpartbound, class.oid), ''),
    COALESCE(E'\nPARTITION BY ' || pg_get_partkeydef(class.oid), '')
        || COALESCE(E'\nWITH (\n    ' || (
            SELECT string_agg(replace(option, '=', ' = '), E',\n    ' ORDER BY option COLLATE "C")
            FROM unnest(class.reloptions) AS option
        ) || E'\n)', '')
FROM pg_class AS class
LEFT JOIN pg_inherits AS inherits ON inherits.inhrelid = class.oid
WHERE ` + ours + `
ORDER BY class.relname`

// A partition has its parent's columns, and is described without them.
const columnsQuery = `
SELECT
    class.relname,
    quote_ident(attribute.attname) || ' ' || format_type(attribute.atttypid, attribute.atttypmod)
        || CASE WHEN attribute.attcollation <> type.typcollation THEN ' COLLATE ' || quote_ident(sorting.collname) ELSE '' END
        || CASE WHEN attribute.attnotnull THEN ' NOT NULL' ELSE '' END
        || CASE
            WHEN attribute.attidentity <> '' THEN ' GENERATED AS IDENTITY'
            WHEN attribute.attgenerated <> '' THEN ' GENERATED ALWAYS AS (' || pg_get_expr(value.adbin, value.adrelid, true) || ')'
            ELSE COALESCE(' DEFAULT ' || pg_get_expr(value.adbin, value.adrelid, true), '')
        END
FROM pg_class AS class
JOIN pg_attribute AS attribute ON attribute.attrelid = class.oid
JOIN pg_type AS type ON type.oid = attribute.atttypid
LEFT JOIN pg_collation AS sorting ON sorting.oid = attribute.attcollation
LEFT JOIN pg_attrdef AS value ON value.adrelid = class.oid AND value.adnum = attribute.attnum
WHERE ` + ours + `
    AND NOT class.relispartition
    AND attribute.attnum > 0
    AND NOT attribute.attisdropped
ORDER BY class.relname, attribute.attnum`

// NOT NULL (contype n) stands with the column: before PostgreSQL 18 it is no constraint.
const constraintsQuery = `
SELECT
    class.relname,
    'CONSTRAINT ' || quote_ident(rule.conname) || ' ' || replace(pg_get_constraintdef(rule.oid, true), E'\n', E'\n    ')
FROM pg_class AS class
JOIN pg_constraint AS rule ON rule.conrelid = class.oid
WHERE ` + ours + `
    AND NOT class.relispartition
    AND rule.contype <> 'n'
ORDER BY class.relname, array_position(ARRAY['p', 'u', 'x', 'f', 'c', 't'], rule.contype::text), rule.conname`

const tableCommentsQuery = `
SELECT
    class.relname,
    CASE about.objsubid
        WHEN 0 THEN format('COMMENT ON TABLE %s IS %L;', class.oid::regclass, about.description)
        ELSE format('COMMENT ON COLUMN %s.%I IS %L;', class.oid::regclass, attribute.attname, about.description)
    END
FROM pg_class AS class
JOIN pg_description AS about ON about.classoid = 'pg_class'::regclass AND about.objoid = class.oid
LEFT JOIN pg_attribute AS attribute ON attribute.attrelid = class.oid AND attribute.attnum = about.objsubid AND about.objsubid > 0
WHERE ` + ours + `
ORDER BY class.relname, about.objsubid`

// The indexes of constraints stand with the constraints, those of partitions with the parent:
// hence no ONLY.
const indexesQuery = `
SELECT
    class.relname,
    CASE WHEN index.indisvalid THEN '' ELSE E'\n-- Not valid: no query uses it.' END || E'\n'
        || regexp_replace(regexp_replace(pg_get_indexdef(index.indexrelid, 0, true), ' ON (ONLY )?', E'\n    ON '), ' WHERE ', E'\n    WHERE ')
        || ';'
        || COALESCE(E'\nCOMMENT ON INDEX ' || index.indexrelid::regclass || ' IS ' || quote_literal(obj_description(index.indexrelid, 'pg_class')) || ';', '')
FROM pg_class AS class
JOIN pg_index AS index ON index.indrelid = class.oid
JOIN pg_class AS self ON self.oid = index.indexrelid
WHERE ` + ours + `
    AND NOT self.relispartition
    AND NOT EXISTS (SELECT FROM pg_constraint AS rule WHERE rule.conindid = index.indexrelid)
ORDER BY class.relname, self.relname`

const triggersQuery = `
SELECT
    class.relname,
    E'\n' || pg_get_triggerdef(trigger.oid, true) || ';'
FROM pg_class AS class
JOIN pg_trigger AS trigger ON trigger.tgrelid = class.oid
WHERE ` + ours + `
    AND NOT trigger.tgisinternal
ORDER BY class.relname, trigger.tgname`
