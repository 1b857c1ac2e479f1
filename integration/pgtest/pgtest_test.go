package pgtest_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

func TestMain(m *testing.M) {
	os.Exit(pgtest.Main(m))
}

func TestNew_EachTestHasAMigratedDatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	first, second := pgtest.New(t), pgtest.New(t)
	if _, err := first.Queue(t).Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	first.Exec(t, "INSERT INTO holdfast.queues (name) VALUES ('mine')")
	if n := pgtest.Value[int](t, second, "SELECT count(*) FROM holdfast.queues WHERE name = 'mine'"); n != 0 {
		t.Errorf("the second database has %d rows of the first", n)
	}
	if got := first.Executed("GetMeta"); got != 1 {
		t.Errorf("the first database ran GetMeta %d times, want 1", got)
	}
	if got := second.Executed("GetMeta"); got != 0 {
		t.Errorf("the second database ran GetMeta %d times, want 0", got)
	}
	if pgtest.Executed()["GetMeta"] == 0 {
		t.Error("the run as a whole has not counted GetMeta")
	}
}

func TestEmpty_HasNoSchema(t *testing.T) {
	t.Parallel()
	database := pgtest.Empty(t)
	if _, err := domain.ReadMeta(t.Context(), database.Pool); !errors.Is(err, domain.ErrNotMigrated) {
		t.Errorf("ReadMeta says %v, want ErrNotMigrated", err)
	}
	if got := database.Executed("GetMeta"); got != 0 {
		t.Errorf("a query that failed was counted %d times", got)
	}
}

func TestExpireLease_LetsTheJobBeReclaimed(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	result, err := domain.Enqueue(t.Context(), database.Pool, domain.RawArgs{JobKind: "k", Payload: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	claimed, err := queue.Claim(t.Context(), domain.ClaimRequest{
		WorkerID: "w", Queue: "default", Buckets: []int{result.ID.Bucket()}, Quota: 1, Batch: 1, Lease: time.Minute,
	})
	if err != nil || len(claimed) != 1 {
		t.Fatalf("claimed %v, %v", claimed, err)
	}
	database.ExpireLease(t, result.ID)
	reclaimed, _, err := queue.Reclaim(t.Context(), 0)
	if err != nil || len(reclaimed) != 1 {
		t.Fatalf("reclaimed %v, %v", reclaimed, err)
	}
	database.EndWait(t, result.ID)
	if due := pgtest.Value[bool](t, database, "SELECT available_at <= now() FROM holdfast.inbox"); !due {
		t.Error("the job is not due")
	}
	if got := database.Executed("ClaimJobs"); got != 1 {
		t.Errorf("ClaimJobs ran %d times by the count, want 1", got)
	}
}
