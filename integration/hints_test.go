package integration

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// However wrong a worker's picture of the others is, and whatever rings get lost, every job is
// completed once, no two claims of a job hold at once, and attempts are bounded. Meanwhile one
// of three workers is cut off with jobs in hand, and comes back when they are another's.
//
// What nobody takes for its own is claimed when it has been due for two seconds, so that where
// rings are wrong it takes that long for the first attempts, and again for the second ones.
func TestHintsAreHints_WrongRingsAndLostNotifications(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		affinity holdfast.Affinity
		lie      lie
		deaf     bool
	}{
		"each owns every bucket":          {holdfast.AffinityRing, aloneInTheWorld, false},
		"nobody is there, all deaf":       {holdfast.AffinityRing, nobody, true},
		"others only, all deaf":           {holdfast.AffinityRing, othersOnly, true},
		"a stale list with a dead worker": {holdfast.AffinityRing, longStale, false},
		"another list at each look, deaf": {holdfast.AffinityRing, anotherAtEachLook, true},
		"a true ring, all deaf":           {holdfast.AffinityRing, nil, true},
		"no affinity, a true ring":        {holdfast.AffinityNone, nil, false},
		"no affinity, nobody there, deaf": {holdfast.AffinityNone, nobody, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := quick()
			config.Affinity = test.affinity
			config.Concurrency = 25
			config.RingCache = 200 * time.Millisecond
			c := newChaos(t)
			victim := &liar{lie: test.lie, deaf: test.deaf}
			c.cutOff = func() { victim.isCut.Store(true) }
			workers := []*workerRun{startLiar(t, c.database, "victim", victim, config, c.handlers()...)}
			waitFor(t, c.isAtWork, "the victim has begun")
			workers = append(workers,
				startLiar(t, c.database, "one", &liar{lie: test.lie, deaf: test.deaf}, config, c.handlers()...),
				startLiar(t, c.database, "two", &liar{lie: test.lie, deaf: test.deaf}, config, c.handlers()...),
			)
			waitFor(t, c.isCutOff, "a worker is cut off with a job in hand")
			held := c.endLeasesOfVictim()
			victim.isCut.Store(false)
			pgtest.Eventually(t, patience, "no job is left", func() bool {
				c.endBackoffs()
				return pgtest.Value[int](t, c.database, "SELECT count(*) FROM holdfast.inbox") == 0
			})
			for _, worker := range workers {
				worker.drain()
			}
			c.check(held)
			for _, worker := range workers[1:] {
				worker.wantNoClaimLost()
			}
		})
	}
}

// wantNoClaimLost checks that a worker which has left never lost a claim.
func (r *workerRun) wantNoClaimLost() {
	r.t.Helper()
	for _, words := range []string{"lease lost", "the result was refused"} {
		if n := strings.Count(r.log.String(), words); n > 0 {
			r.t.Errorf("worker %s says %d times: %s", r.ids, n, words)
		}
	}
}

// How many jobs there are of each sort.
const (
	chaosJobs     = 1500
	chaosBookings = chaosJobs / 5  // In a transaction with their completion.
	chaosFailing  = chaosJobs / 10 // Fail at first.
	chaosSnoozing = chaosJobs / 10 // Are put off at first.
)

// errand is a job that misbehaves once.
type errand struct {
	First string `json:"first"` // "", fail or snooze.
}

func (errand) Kind() string { return "errand" }

// chaos is what the workers of one test have to do, and a journal of what they did.
type chaos struct {
	t        *testing.T
	database *pgtest.Database
	cutOff   func()
	isAtWork chan struct{} // Closed when the victim has begun an errand.
	isCutOff chan struct{} // Closed when cutOff was called.

	seen     sync.Map // Errands that have misbehaved.
	ofVictim atomic.Int64
}

func newChaos(t *testing.T) *chaos {
	t.Helper()
	c := &chaos{t: t, database: pgtest.New(t), isAtWork: make(chan struct{}), isCutOff: make(chan struct{})}
	c.database.Exec(t, ledger)
	c.database.Exec(t, `
		CREATE TABLE journal (
			job uuid, generation bigint, worker text, began timestamptz DEFAULT clock_timestamp(), ended timestamptz,
			PRIMARY KEY (job, generation)
		)`)
	jobs := make([]domain.NewJob, chaosJobs)
	for i := range jobs {
		switch i % 10 {
		case 0:
			jobs[i].Args = errand{First: "fail"}
		case 1:
			jobs[i].Args = errand{First: "snooze"}
		case 2, 3:
			jobs[i].Args = booking{}
		default:
			jobs[i].Args = errand{}
		}
	}
	if _, err := domain.EnqueueMany(t.Context(), c.database.Pool, jobs...); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *chaos) handlers() []holdfast.Handler {
	return []holdfast.Handler{
		holdfast.Handle(c.runErrand),
		holdfast.HandleTx(c.database.Pool, func(ctx context.Context, tx pgx.Tx, job holdfast.Job[booking]) error {
			if err := enter(ctx, tx, job.ClaimedJob); err != nil {
				return err
			}
			return c.note(ctx, tx, job.ClaimedJob, func() error { return nil })
		}),
	}
}

func (c *chaos) runErrand(ctx context.Context, job holdfast.Job[errand]) error {
	return c.note(ctx, c.database.Pool, job.ClaimedJob, func() error {
		if job.WorkerID == "victim-1" {
			switch c.ofVictim.Add(1) {
			case 1:
				close(c.isAtWork)
			case 5:
				c.cutOff()
				close(c.isCutOff)
			}
		}
		if _, again := c.seen.LoadOrStore(job.ID, true); again {
			return nil
		}
		switch job.Args.First {
		case "fail":
			return holdfast.RetryIn(0, errFirstTime)
		case "snooze":
			return holdfast.Snooze(100 * time.Millisecond)
		}
		return nil
	})
}

// note writes the claim into the journal while the work is done. A claim that runs twice is
// refused there.
func (c *chaos) note(ctx context.Context, db domain.DBTX, job domain.ClaimedJob, work func() error) error {
	_, err := db.Exec(ctx, "INSERT INTO journal (job, generation, worker) VALUES ($1, $2, $3)", job.ID.String(), job.Generation, job.WorkerID)
	if ctx.Err() != nil {
		return context.Cause(ctx) // The victim has learned that it lost the claim.
	}
	if err != nil {
		c.t.Error(err)
		return err
	}
	result := work()
	_, err = db.Exec(ctx, "UPDATE journal SET ended = clock_timestamp() WHERE job = $1 AND generation = $2", job.ID.String(), job.Generation)
	if err != nil && ctx.Err() == nil {
		c.t.Error(err)
	}
	return result
}

// endLeasesOfVictim waits until what the victim holds is another's to claim, and returns how
// many jobs that were.
func (c *chaos) endLeasesOfVictim() (held int64) {
	held = c.database.Exec(c.t, "UPDATE holdfast.inbox SET lease_expires_at = now() - interval '1 second' WHERE claimed_by = 'victim-1'")
	if held == 0 {
		c.t.Error("the victim held no job")
	}
	pgtest.Eventually(c.t, patience, "what the victim held is reclaimed", func() bool {
		return pgtest.Value[int](c.t, c.database, "SELECT count(*) FROM holdfast.inbox WHERE lease_expires_at < now()") == 0
	})
	return held
}

// endBackoffs makes what waits for another attempt due for long.
func (c *chaos) endBackoffs() {
	c.database.Exec(c.t, "UPDATE holdfast.inbox SET available_at = now() - interval '3 seconds' WHERE status = 'pending' AND available_at > now() + interval '200 milliseconds'")
}

// check compares what was done with what was to do. So many claims ended by their leases.
func (c *chaos) check(reclaimed int64) {
	c.t.Helper()
	for what, check := range map[string]struct {
		sql  string
		want int64
	}{
		"completed jobs":              {"SELECT count(*) FROM holdfast.inbox_archive", chaosJobs},
		"jobs completed twice":        {"SELECT count(*) - count(DISTINCT id) FROM holdfast.inbox_archive", 0},
		"effects in transactions":     {"SELECT count(DISTINCT job) FROM ledger", chaosBookings},
		"effects done twice":          {"SELECT count(*) - count(DISTINCT job) FROM ledger", 0},
		"jobs with too many attempts": {"SELECT count(*) FROM holdfast.inbox_archive WHERE attempts > 3", 0},
		"claims that overlap, the victim's aside": {`
			SELECT count(*) FROM journal AS first JOIN journal AS later USING (job)
			WHERE first.generation < later.generation AND first.worker <> 'victim-1'
				AND (first.ended IS NULL OR first.ended > later.began)`, 0},
	} {
		if got := pgtest.Value[int64](c.t, c.database, check.sql); got != check.want {
			c.t.Errorf("%d %s, want %d", got, what, check.want)
		}
	}
	spent := pgtest.Value[int64](c.t, c.database, "SELECT sum(attempts) FROM holdfast.inbox_archive")
	if least, most := chaosJobs+reclaimed, chaosJobs+reclaimed+chaosFailing; spent < least || spent > most {
		c.t.Errorf("%d attempts were spent, want %d to %d", spent, least, most)
	}
	if n := pgtest.Value[int64](c.t, c.database, "SELECT count(*) FROM journal"); n < chaosJobs+chaosSnoozing {
		c.t.Errorf("the journal has %d claims, want %d at least", n, chaosJobs+chaosSnoozing)
	}
}
