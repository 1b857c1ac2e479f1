package integration

import (
	"context"
	"fmt"
	"path"
	"sync"
)

// pairRun is what came of one run: what each statement answered, and the state at the end.
type pairRun struct {
	answers [2]string
	state   string
	waited  bool // The second statement waited for the first one's transaction.
}

// pairSchedule is two statements at once: the second starts while the first one's transaction
// is open, which then commits or rolls back.
type pairSchedule struct {
	first, second, start string
	commit               bool
}

func (s pairSchedule) String() string {
	end := "rolls back"
	if s.commit {
		end = "commits"
	}
	return fmt.Sprintf("%s, then %s while it is open, which %s, from %q", s.first, s.second, end, s.start)
}

// pairStep is a statement in its session, 1 or 2.
type pairStep struct {
	name    string
	session int
}

// serial runs statements one after the other, each in a transaction of its own, and holds
// those that have a fence to it.
func (l *pairLane) serial(ctx context.Context, start string, steps ...pairStep) (run pairRun, err error) {
	if err := l.begin(ctx, start); err != nil {
		return run, err
	}
	for _, step := range steps {
		if run.answers[step.session-1], err = l.alone(ctx, step); err != nil {
			return run, fmt.Errorf("%s by itself, from %q: %w", step.name, start, err)
		}
	}
	run.state, err = l.state(ctx)
	return run, err
}

func (l *pairLane) alone(ctx context.Context, step pairStep) (string, error) {
	fenced := pairRecipes[step.name].fenced
	var before string
	var held, on bool
	if fenced != nil {
		err := l.watcher.QueryRow(ctx, `SELECT count(*) > 0, coalesce(bool_and(lease_expires_at > now()), false) FROM holdfast.inbox
			WHERE id = $1 AND claimed_by = 'w1' AND lease_generation = $2`, pairJob, int64(pairToken)).Scan(&held, &on)
		if err != nil {
			return "", err
		}
		if before, err = l.state(ctx); err != nil {
			return "", err
		}
	}
	tx, err := l.sessions[step.session-1].Begin(ctx)
	if err != nil {
		return "", err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	answer, err := runPair(ctx, tx, step.name, step.session)
	if err != nil {
		return "", err
	}
	if err := tx.Commit(ctx); err != nil || fenced == nil {
		return answer, err
	}
	if found := answer != nothingFound; found != fenced(held, on) {
		return "", fmt.Errorf("it answers %q, where its claim is held: %t", answer, held)
	}
	if after, err := l.state(ctx); err != nil || answer == nothingFound && after != before {
		return "", fmt.Errorf("it answers nothing and changes %s\nto %s (%w)", before, after, err)
	}
	return answer, nil
}

// pairOracle remembers the serial runs that many schedules are compared with.
type pairOracle struct {
	mutex sync.Mutex
	known map[string]pairRun
}

func (o *pairOracle) serial(ctx context.Context, lane *pairLane, start string, steps ...pairStep) (pairRun, error) {
	name := fmt.Sprint(start, steps)
	o.mutex.Lock()
	run, ok := o.known[name]
	o.mutex.Unlock()
	if ok {
		return run, nil
	}
	run, err := lane.serial(ctx, start, steps...)
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.known[name] = run
	return run, err
}

// judge says how a run differs from every serial one it may equal; nothing is as it should be.
func (o *pairOracle) judge(ctx context.Context, lane *pairLane, s pairSchedule, got pairRun) (complaint string, err error) {
	if got.waited && pairRecipes[s.second].passes {
		return "it waits, though it should pass by what is locked", nil
	}
	if !s.commit {
		got.answers[0] = ""
	}
	var want pairRun
	for i, allowed := range s.serialRuns(got.waited) {
		run, err := o.serial(ctx, lane, s.start, allowed.steps...)
		if err != nil {
			return "", err
		}
		if allowed.passed {
			run.answers[1] = nothingFound
		}
		if got.answers == run.answers && got.state == run.state {
			return "", nil
		}
		if i == 0 {
			want = run
		}
	}
	return fmt.Sprintf("it waited: %t; it answers %q and leaves\n%s\nand by itself, afterwards, %q\n%s",
		got.waited, got.answers, got.state, want.answers, want.state), nil
}

// pairOrder is a serial run that a schedule may equal.
type pairOrder struct {
	steps  []pairStep
	passed bool // The second statement found everything locked, and so nothing.
}

// serialRuns are the runs that a schedule may equal, the likeliest first. A statement that
// answered while the other's transaction was open may count as the earlier one.
func (s pairSchedule) serialRuns(waited bool) []pairOrder {
	first, second := pairStep{s.first, 1}, pairStep{s.second, 2}
	recipe := pairRecipes[s.second]
	var orders []pairOrder
	if s.commit {
		orders = append(orders, pairOrder{steps: []pairStep{first, second}})
	} else {
		orders = append(orders, pairOrder{steps: []pairStep{second}})
	}
	if recipe.passes || recipe.yields {
		passed := pairOrder{passed: true}
		if s.commit {
			passed.steps = []pairStep{first}
		}
		orders = append(orders, passed)
	}
	if s.commit && !waited {
		orders = append(orders, pairOrder{steps: []pairStep{second, first}})
	}
	return orders
}

// pairDeviation is an outcome that no serial run has, and that is right all the same.
type pairDeviation struct {
	first, second string // Patterns of names.
	waits         bool   // Whether the second statement waits.
	why           string
}

var pairDeviations = []pairDeviation{
	{"SetQueue", "Enqueue*", false, "An enqueue takes no lock on its queue: one that is under way while the queue becomes ordered stamps its jobs as unordered."},
	{"Enqueue*", "SetQueue", false, "The queue becomes ordered before it shows that it has unordered jobs."},
	{"DropArchiveDays", "ArchiveCompletedJobs", true, "It skips locked rows, but the whole archive is locked, for as long as it takes to drop its old days."},
}

func (d pairDeviation) covers(s pairSchedule, run pairRun) bool {
	first, _ := path.Match(d.first, s.first)
	second, _ := path.Match(d.second, s.second)
	return first && second && d.waits == run.waited
}
