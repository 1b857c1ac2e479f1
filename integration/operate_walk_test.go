package integration

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// fillDead adds dead jobs of as many keys in turn, an hour dead. Their ends are in another order
// than their enqueues: those with the highest seq were finished first.
func fillDead(t *testing.T, database *pgtest.Database, queue, kind string, jobs, keys int, ordered bool) {
	t.Helper()
	database.Exec(t, `
		INSERT INTO holdfast.inbox (id, partition_bucket, queue, kind, partition_key, ordered, payload, status, attempts, finished_at, finished_by, last_error)
		SELECT holdfast.new_job_id(placed.bucket), placed.bucket, $1, $2, placed.key, $5, '{}', 'dead_letter', 5,
			now() - interval '1 hour' - placed.n * interval '1 millisecond', 'w', 'smtp 421 at ' || placed.n
		FROM (
			SELECT n, key, holdfast.bucket_of(key, 1024) AS bucket
			FROM (SELECT n, 'key:' || n % $4::integer AS key FROM generate_series(1, $3::integer) AS n) AS keys
			ORDER BY n
		) AS placed`, queue, kind, jobs, keys, ordered)
}

// wantRedrivenBySeq expects that no job is redriven while one of its key with a lower seq is
// dead, and returns how many are.
func wantRedrivenBySeq(t *testing.T, database *pgtest.Database) int {
	t.Helper()
	overtaken := pgtest.Value[int](t, database, `
		SELECT count(*) FROM (
			SELECT partition_key, max(seq) FILTER (WHERE status = 'pending') > min(seq) FILTER (WHERE status = 'dead_letter') AS overtaken
			FROM holdfast.inbox GROUP BY partition_key
		) AS keys WHERE overtaken`)
	if overtaken != 0 {
		t.Errorf("%d keys have a redriven job behind a dead one", overtaken)
	}
	return pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox WHERE status = 'pending'")
}

func TestOperate_InterruptedRedriveKeepsTheOrderAndIsResumed(t *testing.T) {
	t.Parallel()
	const jobs = 5000 // Pages of 2,000 make it.
	database := pgtest.New(t)
	fillDead(t, database, "default", "note", jobs, 70, false)
	ctx, stop := context.WithCancel(t.Context())
	done, err := anna.RedriveDead(ctx, database.Pool, domain.DeadFilter{Queue: "default"}, 0, domain.Walk{Batch: 300, Progress: func(progress domain.Progress) error {
		if progress.Done >= 1000 {
			stop()
		}
		return nil
	}})
	if !errors.Is(err, context.Canceled) || done != (domain.Progress{Done: 1200, Seen: 1200, Of: jobs}) {
		t.Fatalf("%+v, %v", done, err)
	}
	if redriven := wantRedrivenBySeq(t, database); redriven != done.Done {
		t.Errorf("%d jobs are redriven, and %d are said to be", redriven, done.Done)
	}
	done, err = anna.RedriveDead(t.Context(), database.Pool, domain.DeadFilter{}, 9, domain.Walk{})
	if err != nil || done != (domain.Progress{Done: jobs - 1200, Seen: jobs - 1200, Of: jobs - 1200}) {
		t.Fatalf("the rest: %+v, %v", done, err)
	}
	// Workers see them in that order too.
	disorder := pgtest.Value[int](t, database, `
		SELECT count(*) FROM (
			SELECT seq < lag(seq) OVER (PARTITION BY partition_key ORDER BY available_at, seq) AS back FROM holdfast.inbox
		) AS claims WHERE back`)
	if disorder != 0 {
		t.Errorf("%d jobs would be claimed after a later one of their key", disorder)
	}
	if nine := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox WHERE max_attempts = 9"); nine != jobs-1200 {
		t.Errorf("%d jobs have 9 attempts", nine)
	}
}

func TestOperate_BatchThatIsUnderWayIsEndedAndCounted(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	fillDead(t, database, "default", "note", 20, 3, false)
	tx, err := database.Pool.Begin(t.Context())
	wantError(t, err, nil)
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	if _, err := tx.Exec(t.Context(), "SELECT FROM holdfast.inbox FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var done domain.Progress
	ended := make(chan error, 1)
	go func() {
		var err error
		done, err = anna.RedriveDead(ctx, database.Pool, domain.DeadFilter{}, 0, domain.Walk{Batch: 10})
		ended <- err
	}()
	pgtest.Eventually(t, patience, "the first batch waits for the lock", func() bool {
		return pgtest.Value[int](t, database, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") == 1
	})
	stop()
	wantError(t, tx.Rollback(t.Context()), nil)
	wantError(t, <-ended, context.Canceled)
	if done != (domain.Progress{Done: 10, Seen: 10, Of: 20}) {
		t.Errorf("the walk ends with %+v", done)
	}
	if redriven := wantRedrivenBySeq(t, database); redriven != 10 {
		t.Errorf("%d jobs are redriven", redriven)
	}
}

func TestOperate_RedriveEndsThoughItsJobsFailAgainMeanwhile(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	fillDead(t, database, "default", "note", 50, 3, false)
	done, err := anna.RedriveDead(t.Context(), database.Pool, domain.DeadFilter{}, 0, domain.Walk{Batch: 10, Progress: func(domain.Progress) error {
		database.Exec(t, "UPDATE holdfast.inbox SET status = 'failed', finished_at = now() WHERE status = 'pending'")
		return nil
	}})
	if err != nil || done != (domain.Progress{Done: 50, Seen: 50, Of: 50}) {
		t.Errorf("%+v, %v", done, err)
	}
	failing := errors.New("no more")
	done, err = anna.PurgeDead(t.Context(), database.Pool, domain.DeadFilter{}, domain.Walk{Batch: 20, Progress: func(progress domain.Progress) error {
		if progress.Done > 0 {
			return failing
		}
		return nil
	}})
	if !errors.Is(err, failing) || done.Done != 20 {
		t.Errorf("the walk ends with %+v, %v", done, err)
	}
}

func TestOperate_FilterMeansWhatItSays(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	fillDead(t, database, "default", "note", 30, 3, false)
	fillDead(t, database, "default", "receipt", 20, 2, false)
	fillDead(t, database, "mail", "note", 10, 2, false)
	enqueue(t, database) // Which is not dead.
	database.Exec(t, "UPDATE holdfast.inbox SET finished_at = finished_at - interval '7 days', status = 'failed' WHERE kind = 'receipt' AND partition_key = 'key:1'")
	database.Exec(t, "UPDATE holdfast.inbox SET last_error = NULL WHERE queue = 'mail' AND partition_key = 'key:1'")
	for _, test := range []struct {
		filter domain.DeadFilter
		want   int
	}{
		{domain.DeadFilter{}, 60},
		{domain.DeadFilter{Queue: "default"}, 50},
		{domain.DeadFilter{Queue: "defaul"}, 0},
		{domain.DeadFilter{Kind: "note"}, 40},
		{domain.DeadFilter{Queue: "mail", Kind: "note"}, 10},
		{domain.DeadFilter{Queue: "mail", Kind: "receipt"}, 0},
		{domain.DeadFilter{Key: "key:1"}, 25},
		{domain.DeadFilter{Error: "421 at 1"}, 11 + 11 + 1},
		{domain.DeadFilter{OlderThan: 24 * time.Hour}, 10},
		{domain.DeadFilter{OlderThan: 24 * time.Hour, Kind: "note"}, 0},
	} {
		preview, err := domain.PreviewDead(t.Context(), database.Pool, test.filter)
		if err != nil || preview.Jobs != test.want || preview.JobsCapped || len(preview.Sample) != min(5, test.want) {
			t.Errorf("%+v: %+v, %v; want %d jobs", test.filter, preview, err, test.want)
		}
	}
	done, err := anna.PurgeDead(t.Context(), database.Pool, domain.DeadFilter{Key: "key:1"}, domain.Walk{})
	if left := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox"); err != nil || done.Done != 25 || left != 61-25 {
		t.Errorf("purged %+v, %v; %d jobs are left", done, err, left)
	}
}

func TestOperate_PreviewSaysWhoStandsBehind(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	fillDead(t, database, "default", "note", 6, 2, true)
	fill(t, database, "default", true, "key:1", 30, 5) // 30 behind one of the two keys.
	database.Exec(t, `UPDATE holdfast.inbox SET status = 'processing', claimed_by = 'w', claimed_at = now(), lease_expires_at = now()
		WHERE seq = (SELECT min(seq) FROM holdfast.inbox WHERE status = 'pending' AND partition_key = 'key:1')`)
	preview, err := domain.PreviewDead(t.Context(), database.Pool, domain.DeadFilter{})
	if err != nil || preview.Jobs != 6 || preview.Ordered != 6 || preview.Keys != 2 || preview.Later != 30 || preview.LaterCapped {
		t.Errorf("%+v, %v", preview, err)
	}
	fill(t, database, "default", true, "key:1", 2000, 0)
	preview, err = domain.PreviewDead(t.Context(), database.Pool, domain.DeadFilter{})
	if err != nil || preview.Later != 1000 || !preview.LaterCapped {
		t.Errorf("%+v, %v", preview, err)
	}
}

func TestOperate_PreviewCountsToTenThousand(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	fillDead(t, database, "default", "note", domain.PreviewCount+1, 100, false)
	preview, err := domain.PreviewDead(t.Context(), database.Pool, domain.DeadFilter{Queue: "default"})
	if err != nil || preview.Jobs != domain.PreviewCount || !preview.JobsCapped {
		t.Errorf("%d jobs, capped %t, %v", preview.Jobs, preview.JobsCapped, err)
	}
}
