package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-pg/holdfast/app/support"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
	"github.com/holdfast-pg/holdfast/worker"
)

// joinAs enters a worker of the default queue that says of itself what is given, and that it
// counts as live for ten minutes: a busy machine may need one of them to build the program.
func joinAs(t *testing.T, queue *domain.Queue, id, says string) {
	t.Helper()
	entry := registration(id)
	entry.Metadata = []byte(`{"worker_ttl_seconds": 600` + says + `}`)
	wantError(t, queue.Join(t.Context(), entry), nil)
}

// What the report computes is what the workers work by, and they say so.
func TestRingReport_IsWhatTheWorkersThemselvesCount(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	config := quick()
	config.RingCache = ringCache
	other := config
	other.Queues = []string{"mail", domain.DefaultQueue}
	startWorker(t, database, database.Pool, "a", config, completing())
	startWorker(t, database, database.Pool, "b", other, completing())
	agree := func(workers int) (ring support.Ring) {
		t.Helper()
		pgtest.Eventually(t, patience, fmt.Sprintf("%d workers agree", workers), func() bool {
			var err error
			ring, err = support.FindRing(t.Context(), database.Pool, domain.DefaultQueue)
			said := 0
			for _, each := range ring.Workers {
				if each.Says != nil {
					said++
				}
			}
			return err == nil && said == workers && ring.Disagree == 0
		})
		return ring
	}
	two := agree(2)
	if two.Unowned != 0 || two.Mean != 512 || two.Imbalance < 1 || two.Imbalance > 1.25 || two.Workers[0].Owned+two.Workers[1].Owned != 1024 {
		t.Errorf("%+v", two)
	}
	if b := two.Workers[1]; b.OwnedInAll != b.Owned+1024 || *b.Says != b.OwnedInAll {
		t.Errorf("%+v", b)
	}
	// One without affinity is a member of the ring, and claims from every bucket all the same.
	config.Affinity = worker.AffinityNone
	startWorker(t, database, database.Pool, "c", config, completing())
	three := agree(3)
	if c := three.Workers[2]; c.Owned != 1024 || c.Affinity != worker.AffinityNone || three.Most > 427 {
		t.Errorf("%+v", three)
	}
}

func TestCLI_RingShowTellsWhoDisagreesAndWhatHasNoOwner(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	nobody := runCLI(t, database, 0, "ring", "show")
	wantLine(t, &nobody.stdout, "without owner", "1024")
	wantOutput(t, &nobody.stderr, "no live worker serves queue default")

	ring := worker.NewRing([]string{"w1", "w2"}, 1024)
	own := [2]int{len(ring.Owned("w1")), len(ring.Owned("w2"))}
	joinAs(t, queue, "w1", fmt.Sprintf(`, "affinity": "ring", "buckets": %d`, own[0]))
	joinAs(t, queue, "w2", `, "affinity": "ring", "buckets": 1024`)
	joinAs(t, queue, "silent", ``)
	database.Exec(t, "UPDATE holdfast.workers SET started_at = now() - interval '1 hour'")
	database.Exec(t, "UPDATE holdfast.workers SET last_seen_at = now() - interval '11 minutes' WHERE id = 'silent'")
	shown := runCLI(t, database, 0, "ring", "show")
	want := fmt.Sprintf(`queue          default
buckets        1024
without owner  0
workers        2
owned          %d to %d, 512.0 on average
imbalance      %.2f
disagree       1

WORKER  AFFINITY  OWNED  IN ALL QUEUES  SAYS            LAST SEEN
w1      ring      %d    %d            %d             SPAN ago
w2      ring      %d    %d            1024, disagrees  SPAN ago
`, min(own[0], own[1]), max(own[0], own[1]), float64(max(own[0], own[1]))/512, own[0], own[0], own[0], own[1], own[1])
	if got := masked(shown.stdout.String()); squeezed(got) != squeezed(want) {
		t.Errorf("printed:\n%s\nwant:\n%s", got, want)
	}
	wantOutput(t, &shown.stderr, "a worker that disagrees")
	found := decoded[support.Ring](t, database, "ring", "show")
	if found.Disagree != 1 || !found.Workers[0].Agrees || found.Workers[1].Agrees || *found.Workers[1].Says != 1024 || found.Workers[1].Owned != own[1] {
		t.Errorf("%+v", found)
	}
	wantOutput(t, &runCLI(t, database, 1, "ring", "show", "--queue", "nowhere").stderr, `find queue "nowhere": no such queue`)
}

// squeezed makes one space of many.
func squeezed(table string) string {
	lines := strings.Split(table, "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return strings.Join(lines, "\n")
}

func TestCLI_RingLookupNamesWhoClaimsTheJobsOfAKey(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	lookup := func(want string) support.Place {
		t.Helper()
		table := runCLI(t, database, 0, "ring", "lookup", "order:7").stdout.String()
		if want = "queue default\nkey order:7\nbucket 58 of 1024\nclaimed by " + want + "\n"; squeezed(table) != want {
			t.Errorf("printed:\n%s\nwant:\n%s", table, want)
		}
		return decoded[support.Place](t, database, "ring", "lookup", "order:7")
	}
	if place := lookup("nobody: no live worker serves the queue"); place.Owner != nil || place.Workers != 0 || place.Bucket != 58 {
		t.Errorf("%+v", place)
	}
	joinAs(t, queue, "w1", `, "affinity": "ring"`)
	if place := lookup("w1, its owner; by others what has waited for 2s"); *place.Owner != "w1" || len(place.Anyone) != 0 {
		t.Errorf("%+v", place)
	}
	owner := worker.NewRing([]string{"w1", "w2"}, 1024).Owner(58)
	free := map[string]string{"w1": "w2", "w2": "w1"}[owner]
	joinAs(t, queue, "w2", `, "affinity": "ring"`)
	database.Exec(t, `UPDATE holdfast.workers SET metadata = metadata || '{"affinity": "none"}' WHERE id = $1`, free)
	lookup(fmt.Sprintf("%s, its owner; also by %s, which claim from every bucket", owner, free))
	database.Exec(t, `UPDATE holdfast.workers SET metadata = metadata || '{"affinity": "none"}'`)
	if place := lookup("w1, w2, which claim from every bucket"); place.Owner != nil || len(place.Anyone) != 2 {
		t.Errorf("%+v", place)
	}
	wantOutput(t, &runCLI(t, database, 1, "ring", "lookup", "k", "--queue", "nowhere").stderr, `find queue "nowhere": no such queue`)
}

func TestCLI_RingWhatIfCountsTheBucketsThatWouldMove(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	ids := []string{"w1", "w2", "w3", "w4"}
	for i, id := range ids {
		joinAs(t, queue, id, "")
		database.Exec(t, "UPDATE holdfast.workers SET started_at = now() - make_interval(mins => $2) WHERE id = $1", id, i)
	}
	suppose := func(args ...string) support.WhatIf {
		t.Helper()
		return decoded[support.WhatIf](t, database, append([]string{"ring", "what-if"}, args...)...)
	}
	if same := suppose("--workers", "4"); same.Moved != 0 || same.Then != 4 || same.Mean != 256 {
		t.Errorf("%+v", same)
	}
	five, joined := suppose("--workers", "5"), suppose("--join")
	if five != joined || five.Then != 5 || five.Moved < 150 || five.Moved > 310 || five.Least < 1 || five.Most > 257 {
		t.Errorf("%+v, with --join %+v", five, joined)
	}
	// w1 is the one that joined last.
	three, left := suppose("--workers", "3"), suppose("--leave", "w1")
	before, after := worker.NewRing(ids, 1024), worker.NewRing(ids[1:], 1024)
	moved := 0
	for bucket := range 1024 {
		if before.Owner(bucket) != after.Owner(bucket) {
			moved++
		}
	}
	if three != left || three.Moved != moved || moved < len(before.Owned("w1")) {
		t.Errorf("%+v, with --leave %+v, want %d moved", three, left, moved)
	}
	table := runCLI(t, database, 0, "ring", "what-if", "--leave", "w1").stdout.String()
	want := fmt.Sprintf("queue default\nworkers 4, then 3\nmoved %d of 1024 buckets, %.1f %%\nowned then %d to %d, 341.3 on average\n",
		moved, float64(moved)/10.24, three.Least, three.Most)
	if squeezed(table) != want {
		t.Errorf("printed:\n%s\nwant:\n%s", table, want)
	}
	wantOutput(t, &runCLI(t, database, 1, "ring", "what-if", "--leave", "w9").stderr, `look among the live workers of queue "default" for "w9"`)
	wantOutput(t, &runCLI(t, database, 2, "ring", "what-if", "--workers", "10001").stderr, "workers: 10001 are more than 10000")
}

func TestCLI_WorkersShowPrintsWhatAWorkerHolds(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	joinAs(t, queue, "w1", `, "version": "1.2.0", "affinity": "ring", "kinds": ["note", "print"]`)
	jobs := enqueueNotes(t, database, 3, domain.Key("order:7"))
	claimed := claim(t, queue, "w1", 3)
	database.Exec(t, "UPDATE holdfast.inbox SET lease_expires_at = now() + interval '1 hour'")
	database.Exec(t, "UPDATE holdfast.inbox SET lease_expires_at = now() - interval '10 seconds' WHERE id = $1", claimed[1].ID.String())
	shown := runCLI(t, database, 0, "workers", "show", "w1", "--limit", "2")
	want := `id w1
status alive
since TIME
last seen SPAN ago
queues default: 1024 of 1024 buckets
kinds note print
says version=1.2.0 kinds=["note", "print"] worker_ttl_seconds=600 affinity=ring
holds 3

JOB QUEUE KIND KEY ATTEMPT GENERATION CLAIMED LEASE
FIRST default note order:7 1 of 5 ONE SPAN ago for SPAN
SECOND default note order:7 1 of 5 TWO SPAN ago ended SPAN ago
`
	got := masked(squeezed(shown.stdout.String()), claimed[0].ID, "FIRST", claimed[1].ID, "SECOND", claimed[0].Generation, "ONE", claimed[1].Generation, "TWO")
	if got != want {
		t.Errorf("printed:\n%s\nwant:\n%s", got, want)
	}
	wantOutput(t, &shown.stderr, "only the 2 oldest of 3 claims are listed")

	found, err := support.FindWorker(t.Context(), database.Pool, "w1", 3)
	wantError(t, err, nil)
	if printed := decoded[support.Worker](t, database, "workers", "show", "w1"); printed.Claims[2].Job != found.Claims[2].Job || !slices.Equal(printed.Queues[0].Buckets, found.Queues[0].Buckets) {
		t.Errorf("%+v is printed as %+v", found, printed)
	}
	if !found.Live || found.InFlight != (domain.Count{Jobs: 3}) || len(found.Claims) != 3 || found.Claims[0].Job != jobs[0] ||
		found.Claims[0].LeaseLeftSeconds < 2400 || found.Claims[0].LeaseLeftSeconds > 3600 || found.Claims[1].LeaseLeftSeconds > -10 || len(found.Queues[0].Buckets) != 1024 {
		t.Errorf("%+v", found)
	}

	database.Exec(t, "UPDATE holdfast.workers SET last_seen_at = now() - interval '11 minutes'")
	wantLine(t, &runCLI(t, database, 0, "workers", "show", "w1").stdout, "status", "alive, but not seen within its time to live: others count it out")
	if report, err := queue.KeepHouse(t.Context(), houseRules); err != nil || len(report.WorkersDied) != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	dead := decoded[support.Worker](t, database, "workers", "show", "w1")
	if dead.Status != domain.WorkerDead || dead.Live || dead.InFlight.Jobs != 3 || dead.Queues[0].Owned != 0 || dead.SilenceSeconds < 660 {
		t.Errorf("%+v", dead)
	}
	wantOutput(t, &runCLI(t, database, 1, "workers", "show", "nobody").stderr,
		`no worker with the id "nobody" is in the registry`, "holdfast workers list --all")
}
