package db

import "strings"

// mend returns SQL that makes the object as it should be; "" when a person has to decide,
// because data may be lost.
func (o object) mend(actual object) string {
	missing := actual.text == ""
	table := "ALTER TABLE holdfast." + o.table + "\n    "
	_, name, _ := strings.Cut(strings.TrimSuffix(o.name, " of table "+o.table), " ")
	switch o.kind {
	case "index":
		drop := ""
		if !missing {
			drop = "DROP INDEX CONCURRENTLY holdfast." + name + ";\n"
		}
		return drop + strings.Replace(o.text, "INDEX ", "INDEX CONCURRENTLY ", 1)
	case "constraint":
		drop := ""
		if !missing {
			drop = "DROP CONSTRAINT " + name + ",\n    "
		}
		return table + drop + "ADD " + o.text + ";"
	case "column":
		if missing {
			return table + "ADD COLUMN " + o.text + ";"
		}
		return mendColumn(table, name, o.text, actual.text)
	case "storage":
		return table + "SET (" + o.text + ");"
	case "function":
		return strings.Replace(o.text, "CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1) + grant(o, actual)
	case "trigger", "view", "type", "sequence":
		if missing {
			return o.text
		}
	}
	return ""
}

// grant gives back to everybody the right to call a function that they should have. The right
// that they should not have is taken by the function's own text.
func grant(expected, actual object) string {
	const revoke = "\nREVOKE ALL ON FUNCTION "
	_, signature, isRevoked := strings.Cut(actual.text, revoke)
	if !isRevoked || strings.Contains(expected.text, revoke) {
		return ""
	}
	return "\nGRANT EXECUTE ON FUNCTION " + strings.Replace(signature, " FROM PUBLIC", " TO PUBLIC", 1)
}

// mendColumn mends what of a column can be mended without writing its rows anew.
func mendColumn(table, name, expected, actual string) string {
	wantType, wantDefault := splitDefault(expected)
	gotType, gotDefault := splitDefault(actual)
	wantType, wantFilled := strings.CutSuffix(wantType, " NOT NULL")
	gotType, gotFilled := strings.CutSuffix(gotType, " NOT NULL")
	if wantType != gotType {
		return ""
	}
	var changes []string
	if wantFilled != gotFilled {
		changes = append(changes, map[bool]string{true: "SET NOT NULL", false: "DROP NOT NULL"}[wantFilled])
	}
	if wantDefault != gotDefault {
		change := "DROP DEFAULT"
		if wantDefault != "" {
			change = "SET DEFAULT " + wantDefault
		}
		changes = append(changes, change)
	}
	for i, change := range changes {
		changes[i] = "ALTER COLUMN " + name + " " + change
	}
	return table + strings.Join(changes, ",\n    ") + ";"
}

func splitDefault(column string) (before, value string) {
	before, value, _ = strings.Cut(column, " DEFAULT ")
	return before, value
}

// remove returns SQL that takes away what should not be there and is nobody's data.
func (o object) remove() string {
	_, name, _ := strings.Cut(strings.TrimSuffix(o.name, " of table "+o.table), " ")
	switch o.kind {
	case "index":
		return "DROP INDEX CONCURRENTLY holdfast." + name + ";"
	case "constraint":
		return "ALTER TABLE holdfast." + o.table + "\n    DROP CONSTRAINT " + name + ";"
	case "trigger":
		return "DROP TRIGGER " + name + " ON holdfast." + o.table + ";"
	case "storage":
		var names []string
		for setting := range strings.SplitSeq(o.text, ", ") {
			key, _, _ := strings.Cut(setting, " ")
			names = append(names, key)
		}
		return "ALTER TABLE holdfast." + o.table + "\n    RESET (" + strings.Join(names, ", ") + ");"
	default:
		return ""
	}
}
