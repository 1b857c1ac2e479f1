package worker_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/worker"
)

func TestConfig_DefaultsAreAsDocumented(t *testing.T) {
	t.Parallel()
	c := worker.Config{}.WithDefaults()
	if !slices.Equal(c.Queues, []string{"default"}) {
		t.Errorf("queues %v, want the one called default", c.Queues)
	}
	equal(t, "Concurrency", c.Concurrency, 8)
	equal(t, "ClaimBatch", c.ClaimBatch, 500)
	for name, test := range map[string]struct{ got, want time.Duration }{
		"Lease":         {c.Lease, 90 * time.Second},
		"RenewEvery":    {c.RenewEvery, 30 * time.Second},
		"LeaseMargin":   {c.LeaseMargin, 9 * time.Second},
		"Heartbeat":     {c.Heartbeat, 10 * time.Second},
		"WorkerTTL":     {c.WorkerTTL, 30 * time.Second},
		"Housekeeping":  {c.Housekeeping, 30 * time.Second},
		"ActivePoll":    {c.ActivePoll, 75 * time.Millisecond},
		"IdlePoll":      {c.IdlePoll, 1500 * time.Millisecond},
		"DrainDeadline": {c.DrainDeadline, 25 * time.Second},
	} {
		equal(t, name, test.got, test.want)
	}
	equal(t, "Version", c.Version, "")
	if c.Logger == nil {
		t.Error("there is no logger")
	}
	equal(t, "Clock", c.Clock, worker.Clock(worker.SystemClock{}))
	if random := c.Random(); random < 0 || random >= 1 {
		t.Errorf("Random returns %v", random)
	}
	if err := (worker.Config{}).Validate(); err != nil {
		t.Errorf("the defaults do not validate: %v", err)
	}
}

func TestConfig_DefaultsFollowFromWhatIsSet(t *testing.T) {
	t.Parallel()
	c := worker.Config{Lease: 3 * time.Minute, Heartbeat: time.Second}.WithDefaults()
	equal(t, "RenewEvery", c.RenewEvery, time.Minute)
	equal(t, "LeaseMargin", c.LeaseMargin, 18*time.Second)
	equal(t, "WorkerTTL", c.WorkerTTL, 3*time.Second)
}

func TestConfig_IDsNameTheProcessAndDiffer(t *testing.T) {
	t.Parallel()
	c := worker.Config{}.WithDefaults()
	first, second := c.NewID(), c.NewID()
	host, _ := os.Hostname()
	if !strings.HasPrefix(first, host) || !strings.Contains(first, fmt.Sprintf("-%d-", os.Getpid())) {
		t.Errorf("the id %s does not name host and process", first)
	}
	if first == second || len(first) > 200 {
		t.Errorf("ids %s and %s, want two of 200 characters at most", first, second)
	}
}

func TestConfig_EveryBrokenRelationIsNamedWithItsValues(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		config worker.Config
		want   []string // Parts of the message.
	}{
		{worker.Config{Concurrency: -1}, []string{"Concurrency must be positive", "-1"}},
		{worker.Config{ClaimBatch: -2}, []string{"ClaimBatch must be positive", "-2"}},
		{worker.Config{Lease: -3 * time.Second}, []string{"Lease must be positive", "-3s"}},
		{worker.Config{RenewEvery: -4 * time.Second}, []string{"RenewEvery must be positive", "-4s"}},
		{worker.Config{LeaseMargin: -5 * time.Second}, []string{"LeaseMargin must be positive", "-5s"}},
		{worker.Config{Heartbeat: -6 * time.Second}, []string{"Heartbeat must be positive", "-6s"}},
		{worker.Config{WorkerTTL: -7 * time.Second}, []string{"WorkerTTL must be positive", "-7s"}},
		{worker.Config{Housekeeping: -8 * time.Second}, []string{"Housekeeping must be positive", "-8s"}},
		{worker.Config{ActivePoll: -9 * time.Second}, []string{"ActivePoll must be positive", "-9s"}},
		{worker.Config{IdlePoll: -10 * time.Second}, []string{"IdlePoll must be positive", "-10s"}},
		{worker.Config{DrainDeadline: -11 * time.Second}, []string{"DrainDeadline must be positive", "-11s"}},
		{worker.Config{RingCache: -12 * time.Second}, []string{"RingCache must be positive", "-12s"}},
		{worker.Config{PayloadWarning: -13}, []string{"PayloadWarning must be positive", "-13"}},
		{worker.Config{Buckets: -14}, []string{"Buckets (-14)", "negative"}},
		{worker.Config{Affinity: "sticky"}, []string{`Affinity ("sticky")`, `"ring"`, `"none"`}},
		{worker.Config{Connections: 1}, []string{"Connections (1)", "at least 4", "settlements, renewals and heartbeats", "claims and housekeeping"}},
		{worker.Config{RingCache: 31 * time.Second}, []string{"RingCache (31s)", "WorkerTTL (30s)"}},
		{worker.Config{Lease: 30 * time.Second, RenewEvery: 11 * time.Second}, []string{"RenewEvery (11s)", "a third of Lease (30s)"}},
		{worker.Config{Lease: 30 * time.Second, LeaseMargin: 20 * time.Second}, []string{"LeaseMargin (20s)", "Lease (30s)", "RenewEvery (10s)"}},
		{worker.Config{Heartbeat: 4 * time.Second, WorkerTTL: 11 * time.Second}, []string{"WorkerTTL (11s)", "three times Heartbeat (4s)"}},
		{worker.Config{Heartbeat: 11 * time.Second, WorkerTTL: 30 * time.Second}, []string{"WorkerTTL (30s)", "three times Heartbeat (11s)"}},
		{worker.Config{ActivePoll: 2 * time.Second}, []string{"ActivePoll (2s)", "IdlePoll (1.5s)"}},
	} {
		err := test.config.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), "worker configuration: ") {
			t.Errorf("%v validates: %v", test.want, err)
			continue
		}
		for _, part := range test.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("the error lacks %q: %v", part, err)
			}
		}
	}
}

func TestConfig_AllBrokenRelationsAreReturned(t *testing.T) {
	t.Parallel()
	err := worker.Config{Concurrency: -1, ActivePoll: time.Hour}.Validate()
	for _, part := range []string{"Concurrency", "ActivePoll"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not name %s: %v", part, err)
		}
	}
}

func TestConfig_LimitsThemselvesAreAllowed(t *testing.T) {
	t.Parallel()
	for _, config := range []worker.Config{
		{Lease: 30 * time.Second, RenewEvery: 10 * time.Second, LeaseMargin: 20*time.Second - 1},
		{Heartbeat: 4 * time.Second, WorkerTTL: 12 * time.Second},
		{ActivePoll: time.Second, IdlePoll: time.Second},
		{RingCache: 30 * time.Second},
		{Connections: 4},
	} {
		if err := config.Validate(); err != nil {
			t.Error(err)
		}
	}
}
