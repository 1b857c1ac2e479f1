package db

import (
	"strings"
	"testing"
)

func TestObjects_EveryStatementOfTheSchemaIsOne(t *testing.T) {
	t.Parallel()
	found := objectsOf(expectedSchema)
	kinds := map[string]int{}
	for _, object := range found.order {
		kinds[object.kind]++
		if strings.Contains(object.text, "COMMENT ON") || strings.TrimSpace(object.text) == "" {
			t.Errorf("%s is %q", object.name, object.text)
		}
	}
	if kinds["object"] > 0 {
		t.Errorf("%d statements are not understood", kinds["object"])
	}
	if len(found.byName) != len(found.order) {
		t.Errorf("%d objects have %d names", len(found.order), len(found.byName))
	}
	for kind, word := range map[string]string{
		"type": "\nCREATE TYPE ", "sequence": "\nCREATE SEQUENCE ", "table": "\nCREATE TABLE ", "view": "\nCREATE VIEW ", "function": "\nCREATE FUNCTION ",
		"constraint": "\n    CONSTRAINT ", "storage": "\nWITH (", "schema": "\nCREATE SCHEMA ",
	} {
		if want := strings.Count(expectedSchema, word); kinds[kind] != want {
			t.Errorf("%d of kind %s, the file has %d", kinds[kind], kind, want)
		}
	}
	if want := strings.Count(expectedSchema, "\nCREATE INDEX ") + strings.Count(expectedSchema, "\nCREATE UNIQUE INDEX "); kinds["index"] != want {
		t.Errorf("%d indexes, the file has %d", kinds["index"], want)
	}
	for _, name := range []string{
		"table inbox", "column payload of table inbox", "constraint inbox_claim_is_whole of table inbox", "storage settings of table inbox",
		"index inbox_lane_processing_idx of table inbox", "function backoff(attempts integer)", "type inbox_status", "sequence inbox_seq", "view jobs",
		"table inbox_archive_default",
	} {
		if found.byName[name].text == "" {
			t.Errorf("there is no %s among %v", name, names(found))
		}
	}
}

func names(found *objects) []string {
	var all []string
	for _, object := range found.order {
		all = append(all, object.name)
	}
	return all
}

func TestDrift_EachDifferenceIsNamedAndMended(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, from, to, object, mend string }{
		{"a default", "max_attempts integer NOT NULL DEFAULT 5,\n    status", "max_attempts integer NOT NULL DEFAULT 6,\n    status", "column max_attempts of table inbox", "ALTER TABLE holdfast.inbox\n    ALTER COLUMN max_attempts SET DEFAULT 5;"},
		{"a column that may be null", "payload jsonb NOT NULL,\n    CONSTRAINT inbox_pkey", "payload jsonb,\n    CONSTRAINT inbox_pkey", "column payload of table inbox", "ALTER TABLE holdfast.inbox\n    ALTER COLUMN payload SET NOT NULL;"},
		{"a type", "    kind text COLLATE \"C\" NOT NULL,\n    partition_key text COLLATE \"C\" NOT NULL,\n    claimed_by", "    kind integer NOT NULL,\n    partition_key text COLLATE \"C\" NOT NULL,\n    claimed_by", "column kind of table inbox", ""},
		{"a column", "    last_error text,\n    headers jsonb,\n    payload jsonb NOT NULL,\n    CONSTRAINT inbox_pkey", "    headers jsonb,\n    payload jsonb NOT NULL,\n    CONSTRAINT inbox_pkey", "column last_error of table inbox", "ALTER TABLE holdfast.inbox\n    ADD COLUMN last_error text;"},
		{"an index that is not valid", "\nCREATE INDEX inbox_claim_idx", "\n-- Not valid: no query uses it.\nCREATE INDEX inbox_claim_idx", "index inbox_claim_idx of table inbox", "DROP INDEX CONCURRENTLY holdfast.inbox_claim_idx;\nCREATE INDEX CONCURRENTLY inbox_claim_idx\n    ON holdfast.inbox"},
		{"a fill factor", "    fillfactor = 85\n", "    fillfactor = 100\n", "storage settings of table inbox", "ALTER TABLE holdfast.inbox\n    SET (autovacuum_analyze_scale_factor = 0.02,"},
		{"a trigger", "\nCREATE TABLE holdfast.inbox_archive (", "\nCREATE TRIGGER t BEFORE UPDATE ON holdfast.inbox FOR EACH ROW EXECUTE FUNCTION f();\n\nCREATE TABLE holdfast.inbox_archive (", "trigger t of table inbox", "DROP TRIGGER t ON holdfast.inbox;"},
		{"a function that everybody may call", "\nREVOKE ALL ON FUNCTION holdfast.drop_archive_days() FROM PUBLIC;", "", "function drop_archive_days()", "REVOKE ALL ON FUNCTION holdfast.drop_archive_days() FROM PUBLIC;"},
		{"a table with a name to quote", "\nCREATE VIEW ", "\nCREATE INDEX i\n    ON holdfast.\"my table\" USING btree (a);\n\nCREATE VIEW ", "object CREATE INDEX i", ""},
		{"a state", "    'dead_letter'\n", "    'dead_letter',\n    'lost'\n", "type inbox_status", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			actual := strings.Replace(expectedSchema, test.from, test.to, 1)
			if actual == expectedSchema {
				t.Fatal("nothing was changed")
			}
			found := differences(expectedSchema, actual)
			if len(found) != 1 || found[0].Object != test.object || !strings.Contains(found[0].Mend, test.mend) || (test.mend == "") != (found[0].Mend == "") {
				t.Errorf("found %+v", found)
			}
		})
	}
}

func TestDrift_AutovacuumAndCommentsAreNoDifference(t *testing.T) {
	t.Parallel()
	actual := strings.ReplaceAll(expectedSchema, "    fillfactor = 85\n", "    autovacuum_enabled = false,\n    fillfactor = 85\n")
	if found := differences(expectedSchema, comment.ReplaceAllString(actual, "")); len(found) != 0 {
		t.Errorf("found %+v", found)
	}
}

func TestDrift_MissingTableIsOneDifference(t *testing.T) {
	t.Parallel()
	wake := strings.Index(expectedSchema, "CREATE TABLE holdfast.wake (")
	workers := strings.Index(expectedSchema, "CREATE TABLE holdfast.workers (")
	without := expectedSchema[:wake] + expectedSchema[workers:]
	if found := differences(expectedSchema, without); len(found) != 1 || found[0].Object != "table wake" || found[0].Actual != "" {
		t.Errorf("found %+v", found)
	}
	if found := differences(without, expectedSchema); len(found) != 1 || found[0].Object != "table wake" || found[0].Expected != "" {
		t.Errorf("found %+v", found)
	}
}
