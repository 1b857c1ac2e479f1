package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// listAll follows a list page by page and returns the keys of its jobs.
func listAll(t *testing.T, database *pgtest.Database, filter domain.JobFilter) (keys []string) {
	t.Helper()
	for range 100 {
		page, err := domain.ListJobs(t.Context(), database.Pool, filter)
		if err != nil {
			t.Fatal(err)
		}
		for _, job := range page.Items {
			if filter.State != "" && job.State != filter.State {
				t.Errorf("%s is %s, not %s", job.PartitionKey, job.State, filter.State)
			}
			keys = append(keys, job.PartitionKey)
		}
		if page.Next == "" {
			return keys
		}
		filter.After = page.Next
	}
	t.Fatal("the list has no end")
	return nil
}

func TestSupport_ReadyJobsAreListedOldestFirstOverAllBuckets(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	var want []string
	for i := range 40 {
		key := fmt.Sprint("order:", i%7, ":", i)
		id := enqueue(t, database, domain.Key(key))
		// Neither in the order of their enqueues nor of their buckets, and two at a time are due at once.
		database.Exec(t, "UPDATE holdfast.inbox SET available_at = date_trunc('hour', now()) - $1 * interval '1 hour' WHERE id = $2", i/2*17%40+1, id.String())
	}
	want = pgtest.Values[string](t, database, "SELECT partition_key FROM holdfast.inbox ORDER BY available_at, seq")
	for _, limit := range []int{1, 3, 40, 100} {
		if got := listAll(t, database, domain.JobFilter{Queue: domain.DefaultQueue, State: domain.StateReady, Limit: limit}); !slices.Equal(got, want) {
			t.Errorf("%d at a time: listed %v, want %v", limit, got, want)
		}
	}
	database.Exec(t, "UPDATE holdfast.inbox SET available_at = available_at + interval '100 hours'")
	if got := listAll(t, database, domain.JobFilter{Queue: domain.DefaultQueue, State: domain.StateScheduled, Limit: 7}); !slices.Equal(got, want) {
		t.Errorf("for later: listed %v, want %v", got, want)
	}
	database.Exec(t, "UPDATE holdfast.inbox SET attempts = 1")
	want = pgtest.Values[string](t, database, "SELECT partition_key FROM holdfast.inbox ORDER BY available_at, id")
	if got := listAll(t, database, domain.JobFilter{Queue: domain.DefaultQueue, State: domain.StateRetrying, Limit: 7}); !slices.Equal(got, want) {
		t.Errorf("retrying: listed %v, want %v", got, want)
	}
	if got := listAll(t, database, domain.JobFilter{Queue: domain.DefaultQueue, State: domain.StateScheduled, Limit: 7}); len(got) != 0 {
		t.Errorf("retrying jobs are listed as scheduled: %v", got)
	}
}

// Many jobs in few buckets, all due at the same time: what one page reads stays bounded, and
// no job is listed twice or left out.
func TestSupport_JobsDueAtTheSameTimeAreEachListedOnce(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	fill(t, database, domain.DefaultQueue, false, "tenant:7", 300, 250)
	database.Exec(t, "UPDATE holdfast.inbox SET available_at = now() - interval '1 minute'")
	got := listAll(t, database, domain.JobFilter{Queue: domain.DefaultQueue, State: domain.StateReady, Limit: 60})
	want := pgtest.Values[string](t, database, "SELECT partition_key FROM holdfast.inbox ORDER BY seq")
	if !slices.Equal(got, want) {
		t.Errorf("listed %d jobs, want %d in the order of their enqueues", len(got), len(want))
	}
}

func TestSupport_ListsGoOnFromOneSourceToTheNext(t *testing.T) {
	t.Parallel()
	database, _ := newOrdered(t)
	for _, key := range []string{"order:7", "order:8", "order:7"} {
		enqueueIn(t, database, key)
	}
	database.Exec(t, "UPDATE holdfast.inbox SET ordered = false WHERE partition_key = 'order:8'")
	for limit := range 4 {
		if got := listAll(t, database, domain.JobFilter{Queue: "mail", State: domain.StateReady, Limit: limit + 1}); strings.Join(got, " ") != "order:8 order:7 order:7" {
			t.Errorf("%d at a time: %v", limit+1, got)
		}
	}
}

func TestSupport_CompletedJobsAreListedKeptOnesFirst(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	for i, mode := range []domain.RetentionMode{domain.RetentionArchive, domain.RetentionKeep} {
		if _, err := domain.SetQueue(t.Context(), database.Pool, domain.DefaultQueue, domain.QueueChange{RetentionMode: &mode}); err != nil {
			t.Fatal(err)
		}
		for j := range 2 {
			enqueue(t, database, domain.Key(fmt.Sprint(mode, " ", i*2+j)))
			mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{}, domain.StatusCompleted)
		}
	}
	for _, limit := range []int{1, 2, 3, 9} {
		if got := listAll(t, database, domain.JobFilter{Queue: domain.DefaultQueue, State: domain.StateCompleted, Limit: limit}); strings.Join(got, ", ") != "keep 3, keep 2, archive 1, archive 0" {
			t.Errorf("%d at a time: %v", limit, got)
		}
	}
}

// A page that passes by what is not wanted ends after 4,000 jobs, and the next goes on there.
func TestSupport_ListsLookAtABoundedNumberOfJobs(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	enqueue(t, database, domain.Key("rare"))
	fill(t, database, domain.DefaultQueue, false, "tenant:7", 4_200, 0)
	filter := domain.JobFilter{Queue: domain.DefaultQueue, Key: "rare", Limit: 5}
	page, err := domain.ListJobs(t.Context(), database.Pool, filter)
	if err != nil || len(page.Items) != 0 || page.Looked != 4_000 || page.Next == "" {
		t.Fatalf("%d of %d, next %q, %v", len(page.Items), page.Looked, page.Next, err)
	}
	if got := listAll(t, database, filter); strings.Join(got, " ") != "rare" {
		t.Errorf("listed %v", got)
	}
}

func TestSupport_CursorOfAnotherListIsRefused(t *testing.T) {
	t.Parallel()
	database := everyState(t)
	page, err := domain.ListJobs(t.Context(), database.Pool, domain.JobFilter{Queue: domain.DefaultQueue, Limit: 1})
	if err != nil || page.Next == "" {
		t.Fatalf("%+v, %v", page, err)
	}
	for _, cursor := range []string{page.Next, "nowhere", "bmV3ZXN0", "%"} {
		_, err := domain.ListDeadJobs(t.Context(), database.Pool, domain.JobFilter{Queue: domain.DefaultQueue, Limit: 1, After: cursor})
		wantInvalid(t, err, "after", "is not where a page of this list ended")
	}
}

func TestSupport_LeasesAreListedOldestClaimFirst(t *testing.T) {
	t.Parallel()
	database := everyState(t)
	page, err := domain.ListLeases(t.Context(), database.Pool, domain.JobFilter{Limit: 9}, false)
	if err != nil || len(page.Items) != 2 || page.Items[0].PartitionKey != "expired" || !page.Items[0].Expired() || page.Items[1].Expired() {
		t.Fatalf("%+v, %v", page, err)
	}
	if other, err := domain.ListLeases(t.Context(), database.Pool, domain.JobFilter{Queue: "mail", Limit: 9}, true); err != nil || len(other.Items) != 0 {
		t.Errorf("%+v, %v", other, err)
	}
}

func TestSupport_DeadJobsAreGroupedByWhatTheirErrorsHaveInCommon(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	for i, text := range []string{
		`order 7 has no address "a@example.org"`, `order 215 has no address ""`, "smtp 421", "order 8 has no address \"b\"\nat line 3",
	} {
		enqueue(t, database, domain.Key(fmt.Sprint("order:", i)), domain.Once(fmt.Sprint("once ", i)))
		mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{Verdict: domain.Fail, Error: text}, domain.StatusFailed)
	}
	groups, err := domain.DeadByError(t.Context(), database.Pool, domain.DefaultQueue, 10)
	if err != nil || groups.Looked != 4 || groups.More || len(groups.Items) != 2 {
		t.Fatalf("%+v, %v", groups, err)
	}
	most := groups.Items[0]
	if most.Jobs != 3 || most.Pattern != "order ? has no address ?" || most.Kind != "note" || !strings.HasSuffix(most.LastError, "at line 3") || !most.FirstAt.Before(most.LastAt) {
		t.Errorf("%+v", most)
	}
	page, err := domain.ListDeadJobs(t.Context(), database.Pool, domain.JobFilter{Queue: domain.DefaultQueue, Fingerprint: most.Fingerprint, Limit: 2})
	if err != nil || len(page.Items) != 2 || page.Next == "" || page.Items[0].ID != most.LastID {
		t.Fatalf("%+v, %v", page, err)
	}
	page, err = domain.ListDeadJobs(t.Context(), database.Pool, domain.JobFilter{Queue: domain.DefaultQueue, Fingerprint: most.Fingerprint, Limit: 2, After: page.Next})
	if err != nil || len(page.Items) != 1 || page.Next != "" || page.Items[0].PartitionKey != "order:0" {
		t.Fatalf("%+v, %v", page, err)
	}
	holders, err := domain.DeadKeyHolders(t.Context(), database.Pool, domain.DefaultQueue, 3)
	if err != nil || len(holders) != 3 || holders[0].IdempotencyKey != "once 3" || holders[0].ID != most.LastID || !holders[0].ExpiresAt.After(time.Now()) {
		t.Fatalf("%+v, %v", holders, err)
	}
	database.Exec(t, "UPDATE holdfast.idempotency_keys SET expires_at = now() - interval '1 second' WHERE key <> 'once 1'")
	if holders, err := domain.DeadKeyHolders(t.Context(), database.Pool, domain.DefaultQueue, 3); err != nil || len(holders) != 1 || holders[0].PartitionKey != "order:1" {
		t.Errorf("%+v, %v", holders, err)
	}
}

func TestSupport_ErrorPatternLeavesOutWhatDiffers(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	for text, want := range map[string]string{
		"":                       "",
		"smtp 421 4.7.0 [TSS04]": "smtp ? ? [TSS?]",
		"job 01a1fc2c-7eb2-7f61-a8bc-5e78be9c003a: dial tcp 10.0.0.7:5432: refused": "job ?: dial tcp ?: refused",
		`key "a b" of 'c d' and ` + "`e`":                                           "key ? of ? and ?",
		"can't find the customer's 3 orders":                                        "can't find the customer's ? orders",
		"panic: nil at 0xc000f4\ngoroutine 7":                                       "panic: nil at ?",
		strings.Repeat("ä", 300):                                                    strings.Repeat("ä", 200),
	} {
		if got := pgtest.Value[string](t, database, "SELECT holdfast.error_pattern($1)", text); got != want {
			t.Errorf("%q has the pattern %q, want %q", text, got, want)
		}
	}
}

func TestSupport_KeyShowsItsJobsInTheirOrder(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	for _, outcome := range []domain.Outcome{{Verdict: domain.Fail, Error: "no"}, {Verdict: domain.Retry, Delay: time.Hour, Error: "later"}, {}} {
		enqueue(t, database, domain.Key("order:7"))
		settle(t, queue, claimOne(t, queue, "w1"), outcome)
	}
	enqueue(t, database, domain.Key("order:7"))
	claimOne(t, queue, "w1")
	enqueue(t, database, domain.Key("order:7"))
	enqueue(t, database, domain.Key("order:8"))
	key, err := domain.FindKey(t.Context(), database.Pool, domain.DefaultQueue, "order:7", 10)
	if err != nil || key.Bucket != domain.BucketOf("order:7", 1024) {
		t.Fatalf("%+v, %v", key, err)
	}
	var states []string
	for _, job := range key.Jobs {
		states = append(states, string(job.State))
	}
	if got := strings.Join(states, " "); got != "failed retrying processing ready" {
		t.Errorf("the jobs are %s", got)
	}
	_, err = domain.FindKey(t.Context(), database.Pool, domain.DefaultQueue, "order:9", 10)
	wantError(t, err, domain.ErrKeyUnknown)
}
