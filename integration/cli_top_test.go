package integration

import (
	"testing"

	"github.com/holdfast-pg/holdfast/app/support"
	"github.com/holdfast-pg/holdfast/domain"
)

func TestCLI_TopPrintsOnceWhereThereIsNoTerminal(t *testing.T) {
	t.Parallel()
	database := everyState(t)
	// What gets worse while the test waits for its turn is left out.
	database.Exec(t, "DELETE FROM holdfast.inbox WHERE partition_key IN ('ready', 'expired', 'processing')")
	joinAs(t, database.Queue(t), "w3", listening+`, "in_flight": 2, "handle_p99_ms": 40`)
	for _, args := range [][]string{{"top"}, {"top", "--print"}} {
		printed := runCLI(t, database, 0, args...)
		wantGolden(t, &printed.stdout,
			"holdfast top TIME",
			"verdict jobs of queue default have ended without success",
			"do holdfast dead groups --queue default",
			"seen 2 failed or dead-lettered",
			"workers 1 live, 0 draining, 0 not seen; 2 jobs in flight, 8 slots", "",
			"QUEUE READY OLDEST RETRYING SCHEDULED PROCESSING DEAD IN/S OUT/S",
			"default 0 - 1 1 0 2 IN OUT", "",
			"WORKER STATUS IN FLIGHT CLAIM P99 HANDLE P99 LAST SEEN QUEUES",
			"w3 alive 2 of 8 AGE AGE AGE ago default", "",
			"DEAD OF default ERROR JOBS FIRST LAST WHAT THEY SAY",
			"note cb4c8db6 1 TIME TIME dial tcp ?: connection refused",
			"note 1a1fad66 1 TIME TIME no such address ?",
		)
		if printed.stderr.String() != "" {
			t.Errorf("stderr: %s", printed.stderr.String())
		}
	}
	// The same structs as the other commands print, and the same numbers.
	top, status := decoded[support.Top](t, database, "top"), decoded[support.Status](t, database, "status")
	if top.Status.Verdict != status.Verdict || top.Status.Queues[0].Ready != status.Queues[0].Ready || top.Workers[0].Says.Concurrency != 8 || top.HotKeys != nil {
		t.Errorf("%+v", top)
	}
	if top.Dead == nil || top.Dead.Looked != 2 || !top.Counters.Known || top.Counters.Enqueued < 8 || top.Counters.Claimed < 6 {
		t.Errorf("%+v, %+v", top.Dead, top.Counters)
	}
	fill(t, database, domain.DefaultQueue, false, "tenant:7", 150, 10)
	if keys := decoded[support.Top](t, database, "top").HotKeys; keys == nil || keys.Queue != domain.DefaultQueue || keys.Keys[0].Key != "tenant:7" || keys.Keys[0].Jobs != 150 {
		t.Errorf("%+v", keys)
	}
}
