package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

// decodeLine reads a line of test_decoding that tells of a change. found is false for tables
// that nobody judges.
func decodeLine(line string) (change history.Change, found bool, err error) {
	if message, isMessage := strings.CutPrefix(line, "message: "); isMessage {
		_, marker, _ := strings.Cut(message, " content:")
		return history.Change{What: history.Mark, Marker: marker}, true, nil
	}
	table, rest, isTable := strings.Cut(strings.TrimPrefix(line, "table "), ": ")
	what, columns, hasColumns := strings.Cut(rest, ": ")
	if !isTable || !hasColumns {
		return change, false, fmt.Errorf("cannot read %q", line)
	}
	change.Table = judged(table)
	if change.Table == "" {
		return change, false, nil
	}
	change.What = strings.ToLower(what)
	before, after, isBoth := strings.Cut(columns, "new-tuple: ")
	switch {
	case isBoth:
		before = strings.TrimPrefix(before, "old-key: ")
	case change.What == history.Delete:
		after = ""
	default:
		before, after = "", columns
	}
	if change.Old, _, err = decodeRow(before); err != nil {
		return change, false, fmt.Errorf("%w in %q", err, line)
	}
	if change.New, change.Marker, err = decodeRow(after); err != nil {
		return change, false, fmt.Errorf("%w in %q", err, line)
	}
	if change.Table == history.Archive && change.New != nil {
		change.New.Status = "completed" // Nothing else is there, so no column says it.
	}
	return change, true, nil
}

// judged returns the name under which the history knows a table, "" if it does not.
func judged(table string) string {
	switch {
	case table == "holdfast.inbox":
		return history.Inbox
	case strings.HasPrefix(table, "holdfast.inbox_archive"):
		return history.Archive
	case table == "soak.placed":
		return history.Placed
	case table == "soak.ledger":
		return history.Ledger
	}
	return ""
}

// decodeRow reads name[type]:value name[type]:value …
func decodeRow(columns string) (row *history.Row, marker string, err error) {
	columns = strings.TrimSpace(columns)
	if columns == "" || columns == "(no-tuple-data)" {
		return nil, "", nil
	}
	row = &history.Row{}
	for columns != "" {
		name, rest, found := strings.Cut(columns, "[")
		_, rest, hasType := strings.Cut(rest, "]:")
		if !found || !hasType {
			return nil, "", fmt.Errorf("no column at %q", columns)
		}
		value, isNull, after, err := decodeValue(rest)
		if err != nil {
			return nil, "", err
		}
		if name == "marker" {
			marker = value
		} else if !isNull {
			if err := set(row, name, value); err != nil {
				return nil, "", fmt.Errorf("column %s: %w", name, err)
			}
		}
		columns = strings.TrimPrefix(after, " ")
	}
	return row, marker, nil
}

// decodeValue reads one value, quoted or not, and returns what follows it.
func decodeValue(text string) (value string, isNull bool, after string, err error) {
	if !strings.HasPrefix(text, "'") {
		value, _, _ = strings.Cut(text, " ")
		return value, value == "null" || value == "unchanged-toast-datum", text[len(value):], nil
	}
	for end := 1; end < len(text); end++ {
		if text[end] != '\'' {
			continue
		}
		if end+1 < len(text) && text[end+1] == '\'' {
			end++
			continue
		}
		return strings.ReplaceAll(text[1:end], "''", "'"), false, text[end+1:], nil
	}
	return "", false, "", fmt.Errorf("no end of %q", text)
}

// set keeps the columns that are judged.
func set(row *history.Row, name, value string) (err error) {
	switch name {
	case "id", "job":
		row.ID = value
	case "queue":
		row.Queue = value
	case "partition_key":
		row.PartitionKey = value
	case "idempotency_key":
		row.IdempotencyKey = value
	case "kind":
		row.Kind = value
	case "ordered":
		row.Ordered = value == "true"
	case "seq":
		row.Seq, err = strconv.ParseInt(value, 10, 64)
	case "status":
		row.Status = value
	case "attempts":
		row.Attempts, err = strconv.Atoi(value)
	case "max_attempts":
		row.MaxAttempts, err = strconv.Atoi(value)
	case "lease_generation", "generation":
		row.Generation, err = strconv.ParseInt(value, 10, 64)
	case "claimed_by":
		row.ClaimedBy = value
	case "last_error":
		row.LastError = value
	case "claimed_at":
		row.ClaimedAt, err = parseTime(value)
	case "lease_expires_at":
		row.LeaseExpiresAt, err = parseTime(value)
	case "available_at":
		row.AvailableAt, err = parseTime(value)
	}
	return err
}

// parseTime reads a time as a session in UTC writes it.
func parseTime(value string) (time.Time, error) {
	parsed, err := time.Parse("2006-01-02 15:04:05.999999999Z07", value)
	return parsed.UTC(), err
}
