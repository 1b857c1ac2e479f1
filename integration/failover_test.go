package integration

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// sink is a resource in a third place, which no failover of the database sets back. It
// refuses a lower token after a higher one, and remembers whom it saw each of them from.
type sink struct {
	mutex   sync.Mutex
	highest int64
	seen    map[int64]domain.JobID
}

// accept fails the test if the token was another claim's.
func (s *sink) accept(t *testing.T, job domain.ClaimedJob) error {
	t.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.seen == nil {
		s.seen = map[int64]domain.JobID{}
	}
	if other, given := s.seen[job.Fence()]; given {
		t.Errorf("token %d of job %s was given to %s before", job.Fence(), job.ID, other)
	}
	s.seen[job.Fence()] = job.ID
	if job.Fence() < s.highest {
		return domain.ErrFenced
	}
	s.highest = job.Fence()
	return nil
}

// inSequence returns the part of a token that comes from the sequence.
func inSequence(token int64) int64 { return token & (1<<40 - 1) }

// A standby that lacks the last claims is promoted while the old primary lives on. Its
// sequence gives the same numbers again; the tokens are larger all the same.
func TestTokensOnlyGrow_ThoughAFailoverLosesClaims(t *testing.T) {
	t.Parallel()
	database, server := pgtest.Alone(t)
	makeOrdered(t, database, "mail")
	enqueueNotes(t, database, 60)
	for key := range 8 {
		enqueueIn(t, database, fmt.Sprint("order:", key))
	}
	promoted, standby := database.Standby(t, server)
	var effects sink
	old := database.Queue(t)
	lost := append(claim(t, old, "old", 20), claimLanes(t, old, laneRequest("mail"))...)
	for _, job := range lost {
		wantError(t, effects.accept(t, job), nil)
	}
	before := effects.highest
	if len(lost) != 28 || before>>40 != 1 {
		t.Fatalf("%d claims up to %d on the old primary, want 28 of epoch 1", len(lost), before)
	}

	if err := standby.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	jobs := claimAllAtOnce(t, promoted)
	repeated := 0
	for _, job := range jobs {
		if job.Fence()>>40 != 2 || job.Fence() <= before {
			t.Errorf("token %d, epoch %d, after %d on the old primary", job.Fence(), job.Fence()>>40, before)
		}
		if inSequence(job.Fence()) <= inSequence(before) {
			repeated++
		}
		_ = effects.accept(t, job) // They raced to the sink too.
	}
	if len(jobs) != 68 || repeated == 0 {
		t.Errorf("%d claims, want 68, and %d numbers of the old primary's again, want some", len(jobs), repeated)
	}
	wantEpoch(t, promoted, 2)

	late := claim(t, old, "old", 1)[0]
	wantError(t, effects.accept(t, late), domain.ErrFenced)
	stale := lost[len(lost)-1]
	wantError(t, settle(t, promoted.Queue(t), stale, domain.Outcome{}).Err, domain.ErrLeaseLost)
	wantEpoch(t, database, 1)
}

// claimAllAtOnce empties both queues by eight workers that begin at the same time.
func claimAllAtOnce(t *testing.T, database *pgtest.Database) []domain.ClaimedJob {
	t.Helper()
	var mutex sync.Mutex
	var all []domain.ClaimedJob
	take := func(jobs []domain.ClaimedJob) {
		mutex.Lock()
		defer mutex.Unlock()
		all = append(all, jobs...)
	}
	atOnce(8, func(i int) {
		queue := database.Queue(t)
		if i%2 == 0 {
			take(claim(t, queue, "w", 10))
			return
		}
		request := laneRequest("mail")
		request.Batch = 2
		take(claimLanes(t, queue, request))
	})
	queue := database.Queue(t)
	take(claim(t, queue, "w", 100))
	take(claimLanes(t, queue, laneRequest("mail")))
	return all
}

// wantEpoch expects the epoch to be recorded.
func wantEpoch(t *testing.T, database *pgtest.Database, want int64) {
	t.Helper()
	if epoch := pgtest.Value[int64](t, database, "SELECT epoch FROM holdfast.meta"); epoch != want {
		t.Errorf("the epoch is %d, want %d", epoch, want)
	}
}

// The second server's own epoch is among what the third one lacks.
func TestTokensOnlyGrow_ThoughTheEpochItselfIsLost(t *testing.T) {
	t.Parallel()
	first, server := pgtest.Alone(t)
	enqueueNotes(t, first, 20)
	var tokens []int64
	take := func(database *pgtest.Database) {
		for _, job := range claim(t, database.Queue(t), "w", 3) {
			tokens = append(tokens, job.Fence())
		}
	}
	second, standby := first.Standby(t, server)
	take(first)
	if err := standby.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	third, next := second.Standby(t, standby)
	take(second)
	if err := next.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	take(third)
	if len(tokens) != 9 {
		t.Fatalf("%d claims, want three on each server", len(tokens))
	}
	for i, token := range tokens {
		if epoch := int64(i/3 + 1); token>>40 != epoch {
			t.Errorf("token %d carries epoch %d, want %d", token, token>>40, epoch)
		}
	}
	for _, i := range []int{3, 6} {
		if last, next := inSequence(tokens[i-1]), inSequence(tokens[i]); next > last {
			t.Errorf("number %d follows %d: the failover has lost nothing", next, last)
		}
	}
}

// Nothing is lost when a server crashes, so nothing is to be raised.
func TestTokensOnlyGrow_EpochOutlivesARestart(t *testing.T) {
	t.Parallel()
	database, server := pgtest.Alone(t)
	enqueueNotes(t, database, 2)
	before := claim(t, database.Queue(t), "w", 1)[0].Fence()
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	database.Pool.Reset()
	after := claim(t, database.Queue(t), "w", 1)[0].Fence()
	if after <= before || after>>40 != 1 {
		t.Errorf("token %d, epoch %d, follows %d", after, after>>40, before)
	}
	if raised := database.Executed("AdvanceEpoch"); raised != 0 {
		t.Errorf("the epoch was to be raised %d times", raised)
	}
}

// Workers stay as they are while their address comes to stand for another server, as it does
// behind a pooler or after a change of a name.
func TestTokensOnlyGrow_WorkersGoOnAfterAFailover(t *testing.T) {
	t.Parallel()
	const jobs = 40
	database, server := pgtest.Alone(t)
	enqueueNotes(t, database, jobs)
	promoted, standby := database.Standby(t, server)
	pool, moveTo := movingPool(t, database)
	var effects sink
	handler := holdfast.Handle(func(_ context.Context, job holdfast.Job[note]) error {
		_ = effects.accept(t, job.ClaimedJob) // Jobs run beside each other: any order is right.
		return nil
	})
	for _, name := range []string{"one", "two"} {
		startWorker(t, promoted, pool, name, quick(), handler)
	}
	untilCompleted(t, database, jobs)

	moveTo(promoted)
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := standby.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	untilCompleted(t, promoted, jobs)
	wantEpoch(t, promoted, 2)
	effects.mutex.Lock()
	defer effects.mutex.Unlock()
	if len(effects.seen) != 2*jobs || inSequence(effects.highest) >= 2*jobs {
		t.Errorf("%d tokens up to number %d, want %d with the numbers of %d", len(effects.seen), inSequence(effects.highest), 2*jobs, jobs)
	}
}

// movingPool returns a pool on the database whose connections lead elsewhere once it moved.
func movingPool(t *testing.T, database *pgtest.Database) (pool *pgxpool.Pool, moveTo func(*pgtest.Database)) {
	t.Helper()
	var address atomic.Pointer[string]
	moveTo = func(to *pgtest.Database) {
		config := to.Config()
		host := fmt.Sprintf("%s:%d", config.Host, config.Port)
		address.Store(&host)
	}
	moveTo(database)
	config := database.Pool.Config()
	var dialer net.Dialer
	config.ConnConfig.DialFunc = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, *address.Load())
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool, moveTo
}

// A part of the incarnation that is not this database's raises the epoch, once: another
// cluster, as after an upgrade, another table, as after a restore, another timeline.
func TestTokensOnlyGrow_OnAnotherIncarnation(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	for i, other := range []string{
		"regexp_replace(incarnation, '^\\d+', '7')",
		"regexp_replace(incarnation, '/\\d+/', '/7/')",
		"regexp_replace(incarnation, '\\d+$', '7')",
	} {
		database.Exec(t, "UPDATE holdfast.meta SET incarnation = "+other)
		wantClaimsInEpoch(t, database, queue, int64(i+2))
	}
	if raised := database.Executed("AdvanceEpoch"); raised != 3 {
		t.Errorf("the epoch was to be raised %d times, want 3", raised)
	}
}

// A service may keep the functions from its users. What it withholds is left out, and the
// epoch is raised when that changes, not with every claim.
func TestTokensOnlyGrow_WhereTheServerWithholdsItsTimeline(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	// The owner is any role that is no superuser.
	database.Exec(t, "GRANT USAGE ON SCHEMA holdfast TO pg_signal_backend")
	database.Exec(t, "ALTER FUNCTION holdfast.incarnation() OWNER TO pg_signal_backend")
	wantClaimsInEpoch(t, database, queue, 1)
	for i, function := range []string{"pg_control_system()", "pg_current_wal_lsn()"} {
		database.Exec(t, "REVOKE EXECUTE ON FUNCTION "+function+" FROM PUBLIC")
		wantClaimsInEpoch(t, database, queue, int64(i+2))
	}
	if here := pgtest.Value[string](t, database, "SELECT regexp_replace(incarnation, '/\\d+/', '//') FROM holdfast.meta"); here != "0//0" {
		t.Errorf("of a server that withholds everything %s is known", here)
	}
}

func wantClaimsInEpoch(t *testing.T, database *pgtest.Database, queue *domain.Queue, want int64) {
	t.Helper()
	for range 2 {
		enqueue(t, database)
		if epoch := claimOne(t, queue, "w").Fence() >> 40; epoch != want {
			t.Errorf("the epoch is %d, want %d", epoch, want)
		}
	}
}

// Four workers find the epoch to be another's before any of them has raised it.
func TestTokensOnlyGrow_RacingWorkersRaiseTheEpochOnce(t *testing.T) {
	t.Parallel()
	const workers = 4
	database := pgtest.New(t)
	enqueueNotes(t, database, workers)
	database.Exec(t, "UPDATE holdfast.meta SET incarnation = '7/7/1'")
	holder, err := database.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Rollback(context.Background())
	if _, err := holder.Exec(t.Context(), "SELECT FROM holdfast.meta FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	var claiming sync.WaitGroup
	for range workers {
		queue := database.Queue(t)
		claiming.Go(func() {
			if jobs := claim(t, queue, "w", 1); len(jobs) != 1 || jobs[0].Fence()>>40 != 2 {
				t.Errorf("claimed %v, want one job in epoch 2", jobs)
			}
		})
	}
	pgtest.Eventually(t, patience, "all of them wait to raise the epoch", func() bool {
		return pgtest.Value[int](t, database, `
			SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%name: AdvanceEpoch%'`) == workers
	})
	if err := holder.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	claiming.Wait()
	wantEpoch(t, database, 2)
}
