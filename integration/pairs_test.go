package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// Every two statements that write meet on one job and one key, in every state in which either
// of them does something: the second starts while the first one's transaction is open. What it
// answers and what both leave behind is what they do one after the other. A statement that
// passes by locked rows may also do nothing, and never waits.
func TestPairs_EveryTwoWritesActAsIfOneCameFirst(t *testing.T) {
	t.Parallel()
	const lanes = 4
	schedules := pairSchedules()
	work := make(chan pairSchedule, len(schedules))
	for _, schedule := range schedules {
		work <- schedule
	}
	close(work)
	began := time.Now()
	matrix := pairMatrix{oracle: pairOracle{known: map[string]pairRun{}}, deviated: map[int]int{}}
	opened := make([]*pairLane, lanes)
	for i := range opened {
		opened[i] = newPairLane(t)
	}
	atOnce(lanes, func(i int) {
		for schedule := range work {
			if !matrix.check(t, opened[i], schedule) {
				return
			}
		}
	})
	for i, deviation := range pairDeviations {
		if matrix.deviated[i] == 0 {
			t.Errorf("%s and %s behave like a serial run: take them off pairDeviations", deviation.first, deviation.second)
		}
	}
	t.Logf("%d statements, %d schedules and %d serial runs in %s: %d waited, %d by design like no serial run",
		len(pairRecipes), len(schedules), len(matrix.oracle.known), time.Since(began).Round(time.Millisecond), matrix.waited, matrix.deviations())
}

// aboutRights are statements that touch no job, but what the server's roles may do.
var aboutRights = map[string]bool{"CreateRoles": true, "GrantRole": true, "GrantRoles": true, "RevokeRole": true}

func TestPairs_EveryWriteHasARecipe(t *testing.T) {
	t.Parallel()
	texts, err := generatedQueries()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		_, ok := pairRecipes[name]
		if aboutRights[name] {
			continue
		}
		if writes := writesOrLocks(texts[name]); writes && !ok {
			t.Errorf("%s writes or locks: add to pairRecipes, in pairs_recipes_test.go, arguments with which it meets the job of pairStarts", name)
		} else if !writes && ok {
			t.Errorf("%s does not write: take it off pairRecipes", name)
		}
	}
	for name, recipe := range pairRecipes {
		for _, start := range recipe.starts {
			if _, ok := pairStarts[start]; !ok {
				t.Errorf("%s starts from %q, which is not in pairStarts", name, start)
			}
		}
		if texts[name] == "" || len(recipe.starts) == 0 {
			t.Errorf("%s: pairRecipes names no statement, or no start", name)
		}
	}
}

var (
	sqlComment = regexp.MustCompile(`--.*`)
	writeWord  = regexp.MustCompile(`\b(INSERT|UPDATE|DELETE|MERGE|TRUNCATE|FOR (NO KEY |KEY )?(SHARE|UPDATE)|LOCK TABLE|\w*advisory\w*)\b|SELECT holdfast\.\w+\(`)
)

func writesOrLocks(text string) bool {
	return writeWord.MatchString(sqlComment.ReplaceAllString(text, ""))
}

// pairSchedules are all of them, in the order of their names.
func pairSchedules() []pairSchedule {
	var schedules []pairSchedule
	names := slices.Sorted(maps.Keys(pairRecipes))
	for _, first := range names {
		for _, second := range names {
			for _, start := range startsOfPair(pairRecipes[first].starts, pairRecipes[second].starts) {
				schedules = append(schedules, pairSchedule{first, second, start, true}, pairSchedule{first, second, start, false})
			}
		}
	}
	return schedules
}

// startsOfPair are those of either statement. Making and dropping tables is slow: that start is
// left to the statements that all touch the archive.
func startsOfPair(first, second []string) []string {
	starts := slices.Concat(first, second)
	slices.Sort(starts)
	return slices.DeleteFunc(slices.Compact(starts), func(start string) bool {
		return start == pairDays && (!slices.Contains(first, start) || !slices.Contains(second, start))
	})
}

// pairMatrix gathers what all lanes find.
type pairMatrix struct {
	oracle pairOracle

	mutex    sync.Mutex
	waited   int
	failed   int
	deviated map[int]int // By place in pairDeviations.
}

// check runs a schedule and says whether to go on.
func (m *pairMatrix) check(t *testing.T, lane *pairLane, schedule pairSchedule) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run, err := lane.overlap(ctx, schedule)
	var complaint string
	if err == nil {
		complaint, err = m.oracle.judge(ctx, lane, schedule, run)
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if run.waited {
		m.waited++
	}
	if broken := brokenLine.FindString(run.state); broken != "" {
		err = errors.Join(err, errors.New(broken))
	}
	place := slices.IndexFunc(pairDeviations, func(d pairDeviation) bool { return d.covers(schedule, run) })
	switch {
	case err != nil:
		t.Errorf("%s: %v", schedule, err)
	case complaint != "" && place >= 0:
		m.deviated[place]++
		return true
	case complaint != "":
		t.Errorf("%s: %s", schedule, complaint)
	default:
		return true
	}
	m.failed++
	return m.failed < 10
}

var brokenLine = regexp.MustCompile(`(?m)^broken: .*$`)

func (m *pairMatrix) deviations() (sum int) {
	for _, count := range m.deviated {
		sum += count
	}
	return sum
}

// pairLane is a database of its own with the two sessions of a schedule, and one that watches.
type pairLane struct {
	sessions [2]*pgx.Conn
	watcher  *pgx.Conn
	starts   map[string]string // The function that makes each start state.
	torn     bool              // Days of the archive are missing.
}

func newPairLane(t *testing.T) *pairLane {
	t.Helper()
	database := pgtest.New(t)
	lane := &pairLane{sessions: [2]*pgx.Conn{database.Conn(t), database.Conn(t)}, watcher: database.Conn(t)}
	for _, session := range lane.sessions {
		// The plans that PlanByIndex, in front of every statement over a set, leaves.
		if _, err := session.Exec(t.Context(), "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off"); err != nil {
			t.Fatal(err)
		}
	}
	if err := lane.prepareStarts(t.Context()); err != nil {
		t.Fatal(err)
	}
	return lane
}

// overlap runs a schedule.
func (l *pairLane) overlap(ctx context.Context, s pairSchedule) (run pairRun, err error) {
	if err := l.begin(ctx, s.start); err != nil {
		return run, err
	}
	var transactions [2]pgx.Tx
	for i, session := range l.sessions {
		if transactions[i], err = session.Begin(ctx); err != nil {
			return run, err
		}
	}
	if run.answers[0], err = runPair(ctx, transactions[0], s.first, 1); err != nil {
		return run, errors.Join(err, l.end(transactions[0].Rollback), l.end(transactions[1].Rollback))
	}
	second := make(chan error, 1)
	go func() {
		var err error
		run.answers[1], err = runPair(ctx, transactions[1], s.second, 2)
		second <- err
	}()
	waited, failure := l.watch(ctx, second)
	ending := transactions[0].Rollback
	if s.commit {
		ending = transactions[0].Commit
	}
	failure = errors.Join(failure, l.end(ending))
	run.waited = waited
	if waited {
		failure = errors.Join(failure, <-second)
	}
	ending = transactions[1].Commit
	if failure != nil {
		ending = transactions[1].Rollback
	}
	if failure = errors.Join(failure, l.end(ending)); failure != nil {
		return run, failure
	}
	run.state, err = l.state(ctx)
	return run, err
}

func (l *pairLane) end(ending func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return ending(ctx)
}

// watch returns when the second session has answered, or waits for the first one.
func (l *pairLane) watch(ctx context.Context, second chan error) (waits bool, err error) {
	first, other := int32(l.sessions[0].PgConn().PID()), int32(l.sessions[1].PgConn().PID())
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-second:
			return false, err
		case <-tick.C:
		}
		if err := l.watcher.QueryRow(ctx, "SELECT $1::integer = ANY(pg_blocking_pids($2::integer))", first, other).Scan(&waits); err != nil {
			return true, fmt.Errorf("watch the second session: %w", err)
		}
		if waits {
			return true, nil
		}
	}
}
