package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/app/support"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

// busy is a look at an installation in which much is wrong.
func busy() topReading {
	waits := func(seconds float64) *float64 { return &seconds }
	jobs := func(n int64) domain.Count { return domain.Count{Jobs: n} }
	return topReading{Top: support.Top{
		Status: support.Status{
			Verdict: "handlers are the bottleneck of queue payments", Do: "add concurrency",
			Findings: []support.Finding{{Seen: "4180 due"}, {Means: "jobs of queue payments have ended without success"}},
			Workers:  support.Workforce{Live: 2, Concurrency: 16, InFlight: 16},
			Queues: []domain.QueueLoad{
				{Queue: "default", Arrivals: domain.Arrivals{PerSecond: 0.25}},
				{Queue: "mail", OldestAgeSeconds: waits(0.24), Ready: jobs(3)},
				{
					Queue: "payments", OldestAgeSeconds: waits(134), Ready: domain.Count{Jobs: 10_000, More: true}, Processing: jobs(16), DeadLetter: jobs(3),
					Arrivals: domain.Arrivals{PerSecond: 41.6}, Completions: domain.Completions{PerSecond: 38.2},
				},
			},
		},
		Counters: domain.Counters{Known: true, Enqueued: 100, Claimed: 90, ReadAt: time.Date(2026, 11, 21, 3, 35, 36, 0, time.UTC)},
		Workers: []support.TopWorker{
			{ID: "vm-1", Status: domain.WorkerAlive, Live: true, Queues: []string{"mail", "payments"}, SilenceSeconds: 4, Says: worker.Facts{InFlight: 8, Concurrency: 8, ClaimP99: 1.6, HandleP99: 2300}},
			{ID: "vm-2", Status: domain.WorkerAlive, Queues: []string{"payments"}, SilenceSeconds: 31, Says: worker.Facts{InFlight: 8, Concurrency: 8}},
		},
		HotKeys: &domain.KeySample{Queue: "payments", Jobs: 200, Keys: []domain.KeyShare{{Key: "tenant:7", Jobs: 150, Share: 0.75}, {Key: "other\x1b[2J:1", Jobs: 1, Share: 0.005}}},
		Dead: &domain.DeadGroups[domain.ErrorGroup]{Queue: "payments", Items: []domain.ErrorGroup{{
			Kind: "capture", Fingerprint: "cb4c8db6", Jobs: 3, Pattern: "dial tcp ?: connection refused",
			FirstAt: time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC), LastAt: time.Date(2026, 11, 21, 3, 30, 0, 0, time.UTC),
		}}},
	}}
}

func wantFrame(t *testing.T, got []string, want string) {
	t.Helper()
	if text := strings.Join(got, "\n"); text != strings.TrimSpace(want) {
		t.Errorf("drawn:\n%s\nwant:\n%s", text, want)
	}
}

// utc makes times print the same on every machine.
func utc(t *testing.T) {
	t.Helper()
	zone := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = zone })
}

func TestTop_WithoutBoundsEverythingIsDrawn(t *testing.T) {
	utc(t)
	wantFrame(t, renderTop(topView{reading: busy()}, 0, 0, plainPaint), `
holdfast top  2026-11-21 03:35:36.000 UTC
verdict  handlers are the bottleneck of queue payments
do       add concurrency
seen     4180 due
also     jobs of queue payments have ended without success
workers  2 live, 0 draining, 0 not seen; 16 jobs in flight, 16 slots

QUEUE     READY   OLDEST  RETRYING  SCHEDULED  PROCESSING  DEAD  IN/S  OUT/S
payments  10000+  2m14s   0         0          16          3     42    38
mail      3       240ms   0         0          0           0     0     0
default   0       -       0         0          0           0     0.25  0

WORKER  STATUS    IN FLIGHT  CLAIM P99  HANDLE P99  LAST SEEN  QUEUES
vm-1    alive     8 of 8     2ms        2300ms      4s ago     mail payments
vm-2    not seen  8 of 8     0ms        0ms         31s ago    payments

KEY OF payments  JOBS SEEN  SHARE
tenant:7         150        75.0 %
other?[2J:1      1          0.5 %

DEAD OF payments  ERROR     JOBS  FIRST                        LAST                         WHAT THEY SAY
capture           cb4c8db6  3     2026-11-21 03:00:00.000 UTC  2026-11-21 03:30:00.000 UTC  dial tcp ?: connection refused
`)
}

func TestTop_AFrameFitsItsTerminal(t *testing.T) {
	utc(t)
	view := topView{reading: busy(), interval: 2 * time.Second, rates: &topRates{enqueued: 236, claimed: 1.5}}
	wantFrame(t, renderTop(view, 48, 17, plainPaint), `
holdfast top  2026-11-21 03:35:36.000 UTC  ever…
verdict  handlers are the bottleneck of queue p…
do       add concurrency
seen     4180 due
also     jobs of queue payments have ended with…
workers  2 live, 0 draining, 0 not seen; 16 job…
rates    236/s enqueued, 1.50/s claimed since t…

QUEUE     READY   OLDEST  RETRYING  SCHEDULED  …
payments  10000+  2m14s   0         0          …
… 2 more

WORKER  STATUS    IN FLIGHT  CLAIM P99  HANDLE …
… 2 more

KEY OF payments  JOBS SEEN  SHARE
… 2 more
`)
	for width := 1; width < 130; width += 7 {
		for height := 1; height < 40; height++ {
			lines := renderTop(view, width, height, plainPaint)
			if len(lines) > height || slices.ContainsFunc(lines, func(line string) bool { return len([]rune(line)) > width }) {
				t.Fatalf("a frame of %d by %d is larger:\n%s", width, height, strings.Join(lines, "\n"))
			}
		}
	}
}

func TestTop_ALostDatabaseIsSaidAboveWhatWasSeenLast(t *testing.T) {
	utc(t)
	before := topView{reading: busy()}
	lost := before.then(looked{err: errors.New("dial tcp 10.0.0.7:5432:\nconnection refused")})
	lost.lostFor = 12 * time.Second
	if got := renderTop(lost, 0, 0, plainPaint); got[1] != "lost     the database, for 12.0s; what follows is from before" ||
		got[2] != "because  dial tcp 10.0.0.7:5432: connection refused" || got[3] != "verdict  handlers are the bottleneck of queue payments" {
		t.Errorf("drawn:\n%s", strings.Join(got, "\n"))
	}
	again := busy()
	again.Counters.Enqueued, again.Counters.Claimed, again.Counters.ReadAt = 130, 90, again.Counters.ReadAt.Add(10*time.Second)
	found := lost.then(looked{reading: again})
	if found.lost != nil || found.rates == nil || *found.rates != (topRates{enqueued: 3}) {
		t.Errorf("%+v, %+v", found.lost, found.rates)
	}
}

func TestTop_AReplicaSaysHowOldTheAnswerIs(t *testing.T) {
	utc(t)
	reading := busy()
	reading.lag = &domain.Lag{Standby: true, Known: true, Age: 1200 * time.Millisecond}
	if got := renderTop(topView{reading: reading}, 0, 0, plainPaint)[1]; got != "read     from a replica that is 1.2 s behind" {
		t.Error(got)
	}
}

func TestTop_ColourSaysHowItStands(t *testing.T) {
	utc(t)
	healthy := topReading{Top: support.Top{Status: support.Status{Healthy: true, Verdict: "healthy: 1 worker live", Do: "nothing"}}}
	for name, test := range map[string]struct {
		reading topReading
		want    string
	}{
		"well":     {healthy, "\x1b[32mverdict  healthy: 1 worker live\x1b[0m"},
		"not well": {busy(), "\x1b[1;31mverdict  handlers are the bottleneck of queue payments\x1b[0m"},
	} {
		if got := renderTop(topView{reading: test.reading}, 0, 0, colourPaint)[1]; got != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
