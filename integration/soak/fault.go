package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-pg/holdfast/integration/soak/history"
	"github.com/holdfast-pg/holdfast/integration/soak/wire"
)

// fault is a kind of harm.
type fault struct {
	kind string

	// inject does the harm and returns when it is over: to whom, what else there is to say, and
	// an error if it could not be done. Whatever it draws it draws from random.
	inject injection
}

// injection returns errors.ErrUnsupported if this machine does not allow it.
type injection func(ctx context.Context, s *soak, random *rand.Rand) (target, detail string, err error)

// deck deals every kind of fault once before it deals one of them again, in another order each
// time.
type deck struct {
	random *rand.Rand
	left   []fault
}

func (d *deck) next() fault {
	if len(d.left) == 0 {
		d.left = allFaults()
		d.random.Shuffle(len(d.left), func(i, j int) { d.left[i], d.left[j] = d.left[j], d.left[i] })
	}
	dealt := d.left[0]
	d.left = d.left[1:]
	return dealt
}

// allFaults lists every kind, always in the same order.
func allFaults() []fault {
	all := slices.Concat(processFaults(), lineFaults(), serverFaults())
	slices.SortFunc(all, func(a, b fault) int { return strings.Compare(a.kind, b.kind) })
	return all
}

// someone draws one of the members.
func someone(random *rand.Rand, members []*member) *member {
	return members[random.IntN(len(members))]
}

// processFaults are those of workers and producers.
func processFaults() []fault {
	return []fault{
		{"worker killed", func(_ context.Context, s *soak, random *rand.Rand) (string, string, error) {
			m := someone(random, s.workers)
			return m.name, "", m.replace(m.kill, nil)
		}},
		{"producer killed", func(_ context.Context, s *soak, random *rand.Rand) (string, string, error) {
			m := someone(random, s.producers)
			return m.name, "", m.replace(m.kill, nil)
		}},
		{"worker paused past its lease", func(ctx context.Context, s *soak, random *rand.Rand) (string, string, error) {
			// Long enough for a second claim, after the backoff, to be over when the first wakes up.
			return freeze(ctx, someone(random, s.workers), 2*lease+time.Duration(random.Int64N(int64(2*lease))))
		}},
		{"worker paused for less than its lease", func(ctx context.Context, s *soak, random *rand.Rand) (string, string, error) {
			return freeze(ctx, someone(random, s.workers), time.Duration(random.Int64N(int64(lease/2))))
		}},
		{"producer paused", func(ctx context.Context, s *soak, random *rand.Rand) (string, string, error) {
			return freeze(ctx, someone(random, s.producers), time.Duration(random.Int64N(int64(2*time.Second))))
		}},
		{"worker drained", func(ctx context.Context, s *soak, random *rand.Rand) (string, string, error) {
			return replace(ctx, someone(random, s.workers), nil)
		}},
		{"rolling restart", func(ctx context.Context, s *soak, _ *rand.Rand) (string, string, error) {
			var failures []error
			for _, m := range s.workers {
				_, _, err := replace(ctx, m, nil)
				failures = append(failures, err)
			}
			return "all workers", "", errors.Join(failures...)
		}},
		{"worker's clock wrong", func(ctx context.Context, s *soak, random *rand.Rand) (string, string, error) {
			offset := time.Duration(random.Int64N(int64(2*time.Hour))) - time.Hour
			name, _, err := replace(ctx, someone(random, s.workers), func(o *orders) { o.ClockOffset = offset })
			return name, offset.String(), err
		}},
		{"worker without housekeeping", func(ctx context.Context, s *soak, random *rand.Rand) (string, string, error) {
			return replace(ctx, someone(random, s.workers), func(o *orders) { o.NoHousekeeping = true })
		}},
		{"some paused and let go in another order", swizzle},
	}
}

// freeze stops a process where it is, and lets it go on.
func freeze(ctx context.Context, m *member, d time.Duration) (target, detail string, err error) {
	if err := m.signal(pauseSignal); err != nil {
		return m.name, "", err
	}
	pause(ctx, d)
	return m.name, d.String(), m.signal(goOnSignal)
}

// replace lets a process drain and starts it again with other orders.
func replace(ctx context.Context, m *member, change func(*orders)) (target, detail string, err error) {
	// A process that is paused by another fault cannot drain, and one that is cut off not fully.
	return m.name, "", m.replace(func() error { return m.drain(ctx, drainPatience) }, change)
}

// swizzle pauses some processes one after the other and lets them go in another order.
func swizzle(ctx context.Context, s *soak, random *rand.Rand) (target, detail string, err error) {
	var stopped []*member
	for _, m := range s.members() {
		if random.IntN(2) == 0 {
			continue
		}
		if failed := m.signal(pauseSignal); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		stopped = append(stopped, m)
		pause(ctx, time.Duration(random.Int64N(int64(lease/4))))
	}
	random.Shuffle(len(stopped), func(i, j int) { stopped[i], stopped[j] = stopped[j], stopped[i] })
	for _, m := range stopped {
		pause(ctx, time.Duration(random.Int64N(int64(lease/2))))
		err = errors.Join(err, m.signal(goOnSignal))
	}
	return fmt.Sprintf("%d processes", len(stopped)), "", err
}

// lineFaults are those of the connections between processes and server.
func lineFaults() []fault {
	faults := []fault{
		{"every connection of a process cut", func(_ context.Context, s *soak, random *rand.Rand) (string, string, error) {
			m := someone(random, s.members())
			return m.name, fmt.Sprintf("%d connections", m.line.Cut()), nil
		}},
		{"process cut off for a time", func(ctx context.Context, s *soak, random *rand.Rand) (string, string, error) {
			m := someone(random, s.members())
			m.line.Refuse(true)
			m.line.Cut()
			pause(ctx, time.Second+time.Duration(random.Int64N(int64(2*lease))))
			m.line.Refuse(false)
			return m.name, "", nil
		}},
		{"slow line", func(ctx context.Context, s *soak, random *rand.Rand) (string, string, error) {
			m := someone(random, s.members())
			m.line.Delay(50*time.Millisecond, 300*time.Millisecond)
			pause(ctx, 2*time.Second)
			m.line.Delay(0, 0)
			return m.name, "", nil
		}},
		{"requests held up", func(ctx context.Context, s *soak, random *rand.Rand) (string, string, error) {
			return stall(ctx, someone(random, s.members()), wire.ToServer, lease/2)
		}},
		{"answers held up", func(ctx context.Context, s *soak, random *rand.Rand) (string, string, error) {
			return stall(ctx, someone(random, s.members()), wire.ToClient, lease/2)
		}},
		{"line dead for longer than a lease", func(ctx context.Context, s *soak, random *rand.Rand) (string, string, error) {
			m := someone(random, s.workers)
			m.line.Stall(wire.ToServer, true)
			name, detail, err := stall(ctx, m, wire.ToClient, lease+lease/2)
			m.line.Stall(wire.ToServer, false)
			return name, detail, err
		}},
	}
	for kind, moment := range map[string]wire.Moment{history.CutBeforeCommit: wire.Unsent, history.CutAfterCommit: wire.Unanswered} {
		for _, statement := range []string{"ClaimJobs", "CompleteJobs", "RetryJobs", "RenewLeases", "commit"} {
			faults = append(faults, cutFault(kind+" of a worker: "+statement, moment, statement, (*soak).theWorkers))
		}
		faults = append(faults, cutFault(kind+" of a producer", moment, "commit", (*soak).theProducers))
	}
	return faults
}

func (s *soak) theProducers() []*member { return s.producers }
func (s *soak) theWorkers() []*member   { return s.workers }

func stall(ctx context.Context, m *member, direction wire.Direction, d time.Duration) (target, detail string, err error) {
	m.line.Stall(direction, true)
	pause(ctx, d)
	m.line.Stall(direction, false)
	return m.name, d.String(), nil
}

// trapPatience is how long a trap waits for its statement.
const trapPatience = 10 * time.Second

// cutFault cuts the connection just before or just after a statement takes effect.
func cutFault(kind string, moment wire.Moment, statement string, whose func(*soak) []*member) fault {
	return fault{kind, func(ctx context.Context, s *soak, random *rand.Rand) (string, string, error) {
		m := someone(random, whose(s))
		sprung := m.line.CutAt(moment, statement)
		late := time.NewTimer(trapPatience)
		defer late.Stop()
		select {
		case <-sprung:
			return m.name, "", nil
		case <-late.C:
		case <-ctx.Done():
		}
		m.line.Disarm()
		return m.name, "", errors.New("the statement did not come in time")
	}}
}
