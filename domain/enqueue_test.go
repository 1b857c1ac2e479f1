package domain

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-pg/holdfast/gen"
)

type receipt struct {
	Order int    `json:"order"`
	Text  string `json:"text,omitempty"`
}

func (receipt) Kind() string { return "send_receipt" }

// stubborn cannot be written as JSON.
type stubborn struct{ Amount float64 }

func (stubborn) Kind() string { return "charge" }

func TestNewJobParams_Defaults(t *testing.T) {
	t.Parallel()
	job, err := newJobParams(receipt{Order: 9182}, []EnqueueOption{Key("order:9182")})
	if err != nil {
		t.Fatal(err)
	}
	want := gen.EnqueueJobParams{
		Kind: "send_receipt", Queue: DefaultQueue, PartitionKey: "order:9182", Hash: hashOf("order:9182"), Ring: true,
		Headers: json.RawMessage("null"), Payload: json.RawMessage(`{"order":9182}`),
	}
	if diff := cmp.Diff(want, job); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestNewJobParams_EveryOption(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)
	job, err := newJobParams(RawArgs{JobKind: "send", Payload: json.RawMessage(`[1]`)}, []EnqueueOption{
		OnQueue("mail"), Key("order:9182"), Once("receipt:9182"), At(at), In(time.Minute), MaxAttempts(3), NoRing(), Headers(map[string]string{"trace": "a"}),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := gen.EnqueueJobParams{
		Kind: "send", Queue: "mail", PartitionKey: "order:9182", Hash: hashOf("order:9182"), IdempotencyKey: "receipt:9182", RunAt: at, Delay: time.Minute,
		MaxAttempts: 3, Headers: json.RawMessage(`{"trace":"a"}`), Payload: json.RawMessage(`[1]`),
	}
	if diff := cmp.Diff(want, job); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestNewJobParams_HeadersOfSeveralOptionsAddUp(t *testing.T) {
	t.Parallel()
	mine := map[string]string{"tenant": "a", "trace": "old"}
	job, err := newJobParams(receipt{}, []EnqueueOption{Headers(mine), Headers(map[string]string{"trace": "new"}), Headers(nil)})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(job.Headers), `{"tenant":"a","trace":"new"}`; got != want {
		t.Errorf("headers %s, want %s", got, want)
	}
	if len(mine) != 2 || mine["trace"] != "old" {
		t.Errorf("the caller's map became %v", mine)
	}
}

func TestNewJobParams_PartitionKeyOfAJobThatNamesNone(t *testing.T) {
	t.Parallel()
	once, err := newJobParams(receipt{}, []EnqueueOption{Once("receipt:9182")})
	if err != nil || once.PartitionKey != "receipt:9182" {
		t.Errorf("with an idempotency key: %q, %v", once.PartitionKey, err)
	}
	seen := map[string]bool{}
	for range 100 {
		job, err := newJobParams(receipt{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkName("key", job.PartitionKey); err != nil {
			t.Fatal(err)
		}
		seen[job.PartitionKey] = true
	}
	if len(seen) != 100 {
		t.Errorf("%d of 100 random keys differ", len(seen))
	}
}

func TestNewJobParams_RefusesWhatIsOutOfBounds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", nameLimit+1)
	raw := func(payload string) Args { return RawArgs{JobKind: "send", Payload: json.RawMessage(payload)} }
	tests := map[string]struct {
		args   Args
		option EnqueueOption
		field  string
	}{
		"no kind":                {RawArgs{Payload: json.RawMessage("1")}, nil, "kind"},
		"long kind":              {RawArgs{JobKind: long, Payload: json.RawMessage("1")}, nil, "kind"},
		"payload cut short":      {raw(`{"order":`), nil, "payload"},
		"payload of no document": {raw(``), nil, "payload"},
		"payload of two":         {raw(`1 2`), nil, "payload"},
		"payload in no JSON":     {raw(`{order:1}`), nil, "payload"},
		"payload without JSON":   {stubborn{math.NaN()}, nil, "payload"},
		"payload over 256 KB":    {receipt{Text: strings.Repeat("x", payloadLimit)}, nil, "payload"},
		"payload with NUL":       {receipt{Text: "a\x00b"}, nil, "payload"},
		"no queue":               {receipt{}, OnQueue(""), "queue"},
		"long queue":             {receipt{}, OnQueue(long), "queue"},
		"no key":                 {receipt{}, Key(""), "key"},
		"long key":               {receipt{}, Key(long), "key"},
		"key with NUL":           {receipt{}, Key("a\x00"), "key"},
		"no idempotency key":     {receipt{}, Once(""), "idempotency key"},
		"long idempotency key":   {receipt{}, Once(long), "idempotency key"},
		"negative delay":         {receipt{}, In(-1), "delay"},
		"no attempts":            {receipt{}, MaxAttempts(0), "max attempts"},
		"negative attempts":      {receipt{}, MaxAttempts(-1), "max attempts"},
		"too many attempts":      {receipt{}, MaxAttempts(maxAttemptsLimit + 1), "max attempts"},
		"headers over 8 KB":      {receipt{}, Headers(map[string]string{"a": strings.Repeat("x", headersLimit)}), "headers"},
		"headers with NUL":       {receipt{}, Headers(map[string]string{"a\x00": "x"}), "headers"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var options []EnqueueOption
			if test.option != nil {
				options = append(options, test.option)
			}
			_, err := newJobParams(test.args, options)
			var invalid *InvalidError
			if !errors.As(err, &invalid) || invalid.Field != test.field {
				t.Errorf("got %v, want an InvalidError of the %s", err, test.field)
			}
		})
	}
}

func TestNewJobParams_TakesWhatIsJustInBounds(t *testing.T) {
	t.Parallel()
	quotes := len(`{"order":0,"text":""}`)
	full := strings.Repeat("x", nameLimit)
	_, err := newJobParams(receipt{Text: strings.Repeat("x", payloadLimit-quotes)}, []EnqueueOption{
		OnQueue(full), Key(full), Once(full), In(0), MaxAttempts(maxAttemptsLimit),
		Headers(map[string]string{"a": strings.Repeat("x", headersLimit-len(`{"a":""}`))}),
	})
	if err != nil {
		t.Error(err)
	}
}

func TestEnqueueResult_WarnsOfLargePayloads(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]bool{0: false, payloadAdvice: false, payloadAdvice + 1: true} {
		result := newEnqueueResult(JobID{}, false, make(json.RawMessage, size))
		if (result.Warning != "") != want {
			t.Errorf("%d bytes: warning %q", size, result.Warning)
		}
	}
}

func TestEnqueueResult_StateOfADuplicateIsLookedUp(t *testing.T) {
	t.Parallel()
	if got := newEnqueueResult(JobID{}, false, nil).State; got != StatusPending {
		t.Errorf("a new job is %q", got)
	}
	if got := newEnqueueResult(JobID{}, true, nil).State; got != "" {
		t.Errorf("a duplicate that nobody looked up is %q", got)
	}
}
