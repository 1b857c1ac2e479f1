package holdfasttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
)

// nearly is how far a time may be from the one asked for: that of the enqueue is read twice.
const nearly = time.Second

func matches(found []candidate, wanted domain.EnqueueTerms) []candidate {
	return slices.DeleteFunc(slices.Clone(found), func(each candidate) bool { return len(differences(each, wanted)) > 0 })
}

// differences names in what a job is not the one asked for.
func differences(found candidate, wanted domain.EnqueueTerms) []string {
	var differ []string
	note := func(what string, same bool) {
		if !same {
			differ = append(differ, what)
		}
	}
	job := found.job
	note("state", job.Status == pending)
	note("payload", found.same)
	note("queue", wanted.Queue == "" || wanted.Queue == job.Queue)
	note("key", wanted.Key == "" || wanted.Key == job.PartitionKey)
	note("idempotency key", wanted.IdempotencyKey == "" || wanted.IdempotencyKey == deref(job.IdempotencyKey))
	note("attempts", wanted.MaxAttempts == 0 || wanted.MaxAttempts == job.MaxAttempts)
	note("headers", wanted.Headers == nil || contains(job.Headers, wanted.Headers))
	delay := job.AvailableAt.Sub(job.CreatedAt)
	note("delay", wanted.In == 0 || (delay-wanted.In).Abs() <= nearly)
	note("time", wanted.At.IsZero() || job.AvailableAt.Sub(wanted.At).Abs() <= nearly || delay <= nearly && !wanted.At.After(job.CreatedAt))
	return differ
}

func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// contains tells whether the headers of a job have those asked for.
func contains(job, wanted json.RawMessage) bool {
	var has, wants map[string]string
	if json.Unmarshal(wanted, &wants) != nil || len(job) > 0 && json.Unmarshal(job, &has) != nil {
		return false
	}
	for name, value := range wants {
		if found, exists := has[name]; !exists || found != value {
			return false
		}
	}
	return true
}

// describe says in a line what was asked for.
func describe(kind string, payload json.RawMessage, wanted domain.EnqueueTerms) string {
	parts := []string{kind}
	if payload != nil {
		parts[0] += " " + string(payload)
	}
	say := func(given bool, format string, value any) {
		if given {
			parts = append(parts, fmt.Sprintf(format, value))
		}
	}
	say(wanted.Queue != "", "queue %q", wanted.Queue)
	say(wanted.Key != "", "key %q", wanted.Key)
	say(wanted.IdempotencyKey != "", "idempotency key %q", wanted.IdempotencyKey)
	say(wanted.In != 0, "in %s", wanted.In)
	say(!wanted.At.IsZero(), "at %s", wanted.At.Format(time.RFC3339))
	say(wanted.MaxAttempts != 0, "attempts %d", wanted.MaxAttempts)
	say(wanted.Headers != nil, "headers %s", wanted.Headers)
	return strings.Join(parts, ", ")
}

// shown is how many jobs a failure lists.
const shown = 10

// listing says what is there instead: the jobs of the kind and in what each differs, or which
// other kinds there are.
func listing(tb testing.TB, db holdfast.DBTX, kind string, found []candidate, wanted domain.EnqueueTerms) string {
	tb.Helper()
	if len(found) == 0 {
		return " There is no job of this kind" + others(tb, db) + ". Was it enqueued in a transaction that this one cannot see?"
	}
	var text strings.Builder
	fmt.Fprintf(&text, " Of kind %s there is:", kind)
	for i, each := range found {
		if i == shown {
			fmt.Fprintf(&text, "\n  and %d more", len(found)-shown)
			break
		}
		text.WriteString("\n  " + line(each.job))
		if differ := differences(each, wanted); len(differ) > 0 {
			text.WriteString("; not the same " + strings.Join(differ, ", "))
		}
	}
	return text.String()
}

// line is a job in a line.
func line(job domain.JobRecord) string {
	var payload bytes.Buffer
	if json.Compact(&payload, job.Payload) != nil {
		payload.Write(job.Payload)
	}
	text := fmt.Sprintf("%s %.500s, queue %q, key %q", job.Status, payload.String(), job.Queue, job.PartitionKey)
	if key := deref(job.IdempotencyKey); key != "" {
		text += fmt.Sprintf(", idempotency key %q", key)
	}
	if delay := job.AvailableAt.Sub(job.CreatedAt).Round(time.Second); delay > 0 {
		text += fmt.Sprintf(", in %s (%s)", delay, job.AvailableAt.UTC().Format(time.RFC3339))
	}
	if len(job.Headers) > 0 {
		text += fmt.Sprintf(", headers %.500s", job.Headers)
	}
	return text
}

// others names the kinds of the jobs that there are.
func others(tb testing.TB, db holdfast.DBTX) string {
	tb.Helper()
	rows, _ := db.Query(tb.Context(), `
		SELECT format('%s (%s)', job.kind, count(*))
		FROM holdfast.jobs AS job
		GROUP BY job.kind
		ORDER BY job.kind
		LIMIT 20`)
	kinds, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		tb.Fatalf("holdfasttest: look for jobs: %v", err)
	}
	if len(kinds) == 0 {
		return ", nor of any other"
	}
	return ", only of " + strings.Join(kinds, ", ")
}
