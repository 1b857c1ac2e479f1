package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// planning are settings that take a way of planning from the server.
var planning = []string{"enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan", "enable_nestloop", "enable_sort"}

// settingNames are the settings that the checks look at.
func settingNames() []string {
	names := []string{
		"fsync", "full_page_writes", "synchronous_commit",
		"default_transaction_isolation", "default_transaction_read_only",
		"autovacuum", "track_counts",
	}
	for _, limit := range limits {
		names = append(names, limit.name)
	}
	return slices.Concat(names, planning)
}

// source says where the value of a setting comes from.
func (p *patient) source(name string) string {
	return "set by " + p.settings[name].Source
}

var durability = check{
	id:       "durability",
	examines: "that fsync, full_page_writes and synchronous_commit are on",
	why:      "After a crash of the server a job that was enqueued may be gone, a job that was completed may run again, and a fence token may be given out twice.",
	severity: Error,
	find: func(_ context.Context, p *patient) ([]symptom, error) {
		var found []symptom
		for _, name := range []string{"fsync", "full_page_writes"} {
			if p.setting(name) == "off" {
				found = append(found, symptom{
					what: fmt.Sprintf("%s is off (%s)", name, p.source(name)),
					fix:  switchOn(name),
				})
			}
		}
		if p.setting("synchronous_commit") == "off" {
			found = append(found, symptom{
				what: fmt.Sprintf("synchronous_commit is off (%s)", p.source("synchronous_commit")),
				fix:  p.forRole("synchronous_commit", "on"),
			})
		}
		return found, nil
	},
}

// limits are the settings by which the server ends a statement, a transaction or a session
// that takes longer, and the least that does not hurt.
var limits = []struct {
	name  string
	least time.Duration
	hurts string
}{
	{"statement_timeout", 10 * time.Second, "a batch of housekeeping or of results on a busy server"},
	{"lock_timeout", time.Second, "a result or a renewal that waits for another statement's row"},
	{"idle_in_transaction_session_timeout", 90 * time.Second, "the transaction of a handler that computes"},
	{"transaction_timeout", 90 * time.Second, "the transaction of a handler that runs long"},
	{"idle_session_timeout", time.Minute, "the session that listens, and each that waits for its next use"},
}

var timeouts = check{
	id:       "timeouts",
	examines: "that no timeout of the role ends what a worker has to do",
	why:      "What the server cuts off is tried again, and cut off again.",
	severity: Warning,
	find: func(_ context.Context, p *patient) ([]symptom, error) {
		var found []symptom
		for _, limit := range limits {
			milliseconds, err := strconv.Atoi(p.setting(limit.name))
			value := time.Duration(milliseconds) * time.Millisecond
			if err != nil || value == 0 || value >= limit.least {
				continue
			}
			found = append(found, symptom{
				what: fmt.Sprintf("%s is %s (%s): too short for %s", limit.name, value, p.source(limit.name), limit.hurts),
				fix:  p.forRole(limit.name, fmt.Sprintf("%ds", int(limit.least.Seconds()))),
			})
		}
		return found, nil
	},
}

var isolation = check{
	id:       "isolation",
	examines: "that transactions are READ COMMITTED by default",
	why:      "Under a stricter level, racing claims, enqueues and settlements end in serialization failures (40001), which are tried again instead of passing each other.",
	severity: Warning,
	find: func(_ context.Context, p *patient) ([]symptom, error) {
		const name = "default_transaction_isolation"
		if p.setting(name) == "read committed" {
			return nil, nil
		}
		return []symptom{{
			what: fmt.Sprintf("%s is %q (%s)", name, p.setting(name), p.source(name)),
			fix:  p.forRole(name, "read committed"),
		}}, nil
	},
}
