package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// days are the archive's day partitions with their bounds, in the order of their names.
func days(t *testing.T, conn *pgx.Conn) (names, bounds []string) {
	t.Helper()
	rows, _ := conn.Query(t.Context(), `
		SELECT child.relname, pg_get_expr(child.relpartbound, child.oid), set_config('TimeZone', 'UTC', false)
		FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid
		WHERE inhparent = 'holdfast.inbox_archive'::regclass AND child.relname <> 'inbox_archive_default'
		ORDER BY child.relname`)
	var name, bound, zone string
	if _, err := pgx.ForEachRow(rows, []any{&name, &bound, &zone}, func() error {
		names, bounds = append(names, name), append(bounds, bound)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return names, bounds
}

func dropDays(t *testing.T, database *pgtest.Database) {
	t.Helper()
	names, _ := days(t, database.Conn(t))
	for _, name := range names {
		database.Exec(t, "DROP TABLE holdfast."+name)
	}
}

func TestKept_MigrationMakesTheComingDaysInUTC(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago", "America/New_York"} {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			dropDays(t, database)
			session := database.Conn(t)
			if _, err := session.Exec(t.Context(), "SELECT set_config('TimeZone', $1, false)", zone); err != nil {
				t.Fatal(err)
			}
			if _, err := session.Exec(t.Context(), "SELECT holdfast.create_archive_days(14)"); err != nil {
				t.Fatal(err)
			}
			checkDays(t, database)
		})
	}
	t.Run("by the migration", func(t *testing.T) {
		t.Parallel()
		checkDays(t, pgtest.New(t))
	})
}

// checkDays wants today and 14 days more, each from midnight to midnight in UTC.
func checkDays(t *testing.T, database *pgtest.Database) {
	t.Helper()
	names, bounds := days(t, inUTC(t, database))
	if len(names) != 15 {
		t.Errorf("there are %d days: %v", len(names), names)
	}
	first, err := time.Parse("20060102", strings.TrimPrefix(names[0], "inbox_archive_"))
	if err != nil {
		t.Fatal(err)
	}
	today := pgtest.Value[time.Time](t, database, "SELECT date_trunc('day', now() AT TIME ZONE 'UTC')")
	if first.After(today) || first.Before(today.AddDate(0, 0, -1)) {
		t.Errorf("the first day is %s, today is %s", names[0], today.Format(time.DateOnly))
	}
	for i := range names {
		day := first.AddDate(0, 0, i)
		wantName := "inbox_archive_" + day.Format("20060102")
		wantBound := fmt.Sprintf("FOR VALUES FROM ('%s 00:00:00+00') TO ('%s 00:00:00+00')", day.Format(time.DateOnly), day.AddDate(0, 0, 1).Format(time.DateOnly))
		if names[i] != wantName || bounds[i] != wantBound {
			t.Errorf("day %d is %s %s, want %s %s", i, names[i], bounds[i], wantName, wantBound)
		}
	}
}

func inUTC(t *testing.T, database *pgtest.Database) *pgx.Conn {
	t.Helper()
	session := database.Conn(t)
	if _, err := session.Exec(t.Context(), "SET TimeZone = 'UTC'"); err != nil {
		t.Fatal(err)
	}
	return session
}

func TestKept_CompletionOfADayWithoutAPartitionIsKeptAndMoved(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	dropDays(t, database)
	id := completeOne(t, database, queue)
	if where := partitionOf(t, database, id); where != "inbox_archive_default" {
		t.Fatalf("without a day the completed job is in %s", where)
	}
	report, err := queue.KeepHouse(t.Context(), domain.HouseRules{
		WorkerTTL: time.Hour, DeadWorkersFor: time.Hour, MarksFor: time.Hour, FencesFor: time.Hour, EventsFor: time.Hour, ArchiveAhead: 14,
	})
	if err != nil {
		t.Fatal(err)
	}
	if report.DaysCreated != 15 && report.DaysCreated != 16 { // 16 when midnight has passed meanwhile.
		t.Errorf("housekeeping made %d days", report.DaysCreated)
	}
	want := pgtest.Value[string](t, database, "SELECT to_char(completed_at AT TIME ZONE 'UTC', '\"inbox_archive_\"YYYYMMDD') FROM holdfast.inbox_archive")
	if where := partitionOf(t, database, id); where != want {
		t.Errorf("after housekeeping the completed job is in %s, want %s", where, want)
	}
	if job, err := domain.FindJob(t.Context(), database.Pool, id); err != nil || !job.Archived {
		t.Errorf("the job is found as %+v, %v", job, err)
	}
}

// A worker that was down for weeks finds rows of many days in the default partition.
func TestKept_OldRowsInTheDefaultPartitionAreMoved(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	id := completeOne(t, database, database.Queue(t))
	database.Exec(t, "UPDATE holdfast.inbox_archive SET completed_at = completed_at - interval '20 days'")
	if where := partitionOf(t, database, id); where != "inbox_archive_default" {
		t.Fatalf("the old row is in %s", where)
	}
	if made := pgtest.Value[int](t, database, "SELECT holdfast.create_archive_days(14)"); made < 20 {
		t.Errorf("%d days were made, want those of 20 days", made)
	}
	if where := partitionOf(t, database, id); where == "inbox_archive_default" {
		t.Error("the old row is still in the default partition")
	}
	if made := pgtest.Value[int](t, database, "SELECT holdfast.create_archive_days(14)"); made > 1 {
		t.Errorf("a second call made %d days", made)
	}
}

func TestKept_HousekeepersAtOnceMakeEachDayOnce(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	dropDays(t, database)
	var group sync.WaitGroup
	var failed [4]error
	for i := range failed {
		group.Go(func() {
			_, failed[i] = database.Pool.Exec(t.Context(), "SELECT holdfast.create_archive_days(14)")
		})
	}
	group.Wait()
	for _, err := range failed {
		if err != nil {
			t.Error(err)
		}
	}
	checkDays(t, database)
}

func TestKept_OldDaysWaitForAReaderWithoutHoldingAnybodyUp(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	old := completeOne(t, database, queue)
	database.Exec(t, "UPDATE holdfast.inbox_archive SET completed_at = completed_at - interval '10 days'")
	database.Exec(t, "SELECT holdfast.create_archive_days(14)")

	reader, err := database.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Rollback(context.Background()) }()
	if _, err := reader.Exec(t.Context(), "SELECT FROM holdfast.inbox_archive"); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	if dropped := pgtest.Value[int](t, database, "SELECT holdfast.drop_archive_days()"); dropped != 0 {
		t.Errorf("%d days were dropped under a reader", dropped)
	}
	// A tenth of a second by the function's lock_timeout; the rest is for a slow machine.
	if took := time.Since(started); took > time.Second {
		t.Errorf("giving up took %s", took)
	}
	completeOne(t, database, queue)

	if err := reader.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if dropped := pgtest.Value[int](t, database, "SELECT holdfast.drop_archive_days()"); dropped < 1 {
		t.Error("no day was dropped after the reader had gone")
	}
	if _, err := domain.FindJob(t.Context(), database.Pool, old); !errors.Is(err, domain.ErrNotFound) {
		t.Errorf("the job of the dropped day: %v", err)
	}
	if n := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox_archive"); n != 1 {
		t.Errorf("the archive holds %d jobs, want the one that was completed meanwhile", n)
	}
}

// completeOne takes one job from its enqueue to its completion.
func completeOne(t *testing.T, database *pgtest.Database, queue *domain.Queue) domain.JobID {
	t.Helper()
	result, err := domain.Enqueue(t.Context(), database.Pool, domain.RawArgs{JobKind: "archive_me", Payload: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	claimed, err := queue.Claim(t.Context(), domain.ClaimRequest{
		WorkerID: "w", Queue: domain.DefaultQueue, Buckets: []int{result.ID.Bucket()}, Quota: 1, Batch: 1, Lease: time.Minute,
	})
	if err != nil || len(claimed) != 1 {
		t.Fatalf("claimed %v, %v", claimed, err)
	}
	settled := queue.Settle(t.Context(), "w", []domain.Settlement{{Claim: claimed[0].Claim, Retention: claimed[0].Retention, Outcome: domain.Outcome{Verdict: domain.Complete}}})
	if len(settled) != 1 || settled[0].Err != nil {
		t.Fatalf("settled as %+v", settled)
	}
	return result.ID
}

func partitionOf(t *testing.T, database *pgtest.Database, id domain.JobID) string {
	t.Helper()
	return pgtest.Value[string](t, database,
		"SELECT relname FROM holdfast.inbox_archive AS job JOIN pg_class ON pg_class.oid = job.tableoid WHERE job.id = $1", id.String())
}
