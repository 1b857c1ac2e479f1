package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/integration/soak/history"
	"github.com/holdfast-pg/holdfast/integration/soak/wire"
)

// settings are what a run is asked for.
type settings struct {
	length time.Duration
	seed   uint64
	dir    string // Exists, and is empty.
	rate   int    // Jobs a second, of all producers.
	out    io.Writer
}

// The size of a run.
const (
	workers   = 3
	producers = 2
)

// soak is a run under way.
type soak struct {
	settings
	*place
	faults     *history.Writer
	workers    []*member
	producers  []*member
	restarting sync.Mutex // The server.
	injecting  sync.Mutex // Guards what follows.
	skipped    map[string]string
}

// run puts workers and producers on a server of their own, does them harm for a time, waits
// until every job has ended, and leaves a complete history.
func run(ctx context.Context, s settings) (err error) {
	began := time.Now()
	fmt.Fprintf(s.out, "soak: %s with seed %d in %s\n", s.length, s.seed, s.dir)
	place, err := newPlace(ctx, s.out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.close()) }()
	run := &soak{settings: s, place: place, skipped: map[string]string{}}
	if run.faults, err = history.Create(s.dir, history.FaultsFile); err != nil {
		return err
	}
	stopCapture, err := run.startCapture(ctx)
	if err != nil {
		return err
	}
	stopMembers, err := run.startMembers()
	if err != nil {
		return errors.Join(err, stopMembers(), stopCapture())
	}
	err = run.harm(ctx)
	if err == nil {
		err = run.settle(ctx)
	}
	// The members end before the last of the log is copied.
	if err = errors.Join(err, stopMembers(), stopCapture(), run.faults.Close()); err != nil {
		return err
	}
	if err := run.writeEnd(ctx); err != nil {
		return err
	}
	return history.Finish(s.dir, history.Run{
		Seed: s.seed, Length: s.length, Began: began, Ended: time.Now(),
		Server: place.server.Version(), Lease: lease, Skipped: run.skippedFaults(),
	})
}

// startCapture copies the server's log beside the run. What it returns copies the rest.
func (s *soak) startCapture(ctx context.Context) (stop func() error, err error) {
	file, err := history.Create(s.dir, history.WALFile)
	if err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(s.jobs)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["timezone"] = "UTC"
	capture := &capture{config: config, file: file}
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	var failed error
	following.Go(func() { failed = capture.follow(ctx) })
	return func() error {
		rest := context.WithoutCancel(ctx)
		cancel()
		following.Wait()
		return errors.Join(failed, capture.drain(rest), file.Close())
	}, nil
}

// startMembers starts the processes, each with a line of its own.
func (s *soak) startMembers() (stop func() error, err error) {
	var all []*member
	stop = func() error {
		var failures []error
		for _, m := range all {
			if m.now != nil {
				failures = append(failures, m.ownEnd())
				select {
				case <-m.now.ended:
				default:
					failures = append(failures, m.drain(context.Background(), drainPatience))
				}
			}
			failures = append(failures, m.line.Close())
		}
		return errors.Join(failures...)
	}
	address, err := url.Parse(s.jobs)
	if err != nil {
		return stop, err
	}
	add := func(role string, number int) (*member, error) {
		line, err := wire.Listen(address.Host)
		if err != nil {
			return nil, err
		}
		m := &member{name: fmt.Sprintf("%s-%d", role, number), line: line, base: orders{
			Role: role, Dir: s.dir, SinkURL: s.sink, JobsURL: through(s.jobs, line.Address()),
			Seed: s.seed + uint64(1000*number), Rate: max(1, s.rate/producers),
		}}
		all = append(all, m)
		return m, m.start(nil)
	}
	for i := range workers {
		m, err := add(workerRole, i+1)
		if err != nil {
			return stop, err
		}
		s.workers = append(s.workers, m)
	}
	for i := range producers {
		m, err := add(producerRole, i+1)
		if err != nil {
			return stop, err
		}
		s.producers = append(s.producers, m)
	}
	return stop, nil
}

// members are all processes of the run.
func (s *soak) members() []*member {
	return slices.Concat(s.workers, s.producers)
}

// Between two faults there is a pause of pauseLeast to pauseLeast + pauseSpread, and so many go
// on at once at most.
const (
	pauseLeast   = 200 * time.Millisecond
	pauseSpread  = 1000 * time.Millisecond
	faultsAtOnce = 4
)

// harm injects faults until the length of the run is over, and waits for those under way.
func (s *soak) harm(ctx context.Context) error {
	random := rand.New(rand.NewPCG(s.seed, 0))
	deck := &deck{random: random}
	until := time.Now().Add(s.length)
	var underWay sync.WaitGroup
	defer underWay.Wait()
	slots := make(chan struct{}, faultsAtOnce)
	for time.Now().Before(until) {
		if !pause(ctx, pauseLeast+time.Duration(random.Int64N(int64(pauseSpread)))) {
			return context.Cause(ctx)
		}
		for _, m := range s.members() {
			if err := m.ownEnd(); err != nil {
				return err
			}
		}
		slots <- struct{}{}
		fault, chance := deck.next(), rand.New(rand.NewPCG(random.Uint64(), 2))
		underWay.Go(func() {
			defer func() { <-slots }()
			s.inject(ctx, fault, chance)
		})
	}
	return nil
}

// inject does one harm and writes it down.
func (s *soak) inject(ctx context.Context, f fault, random *rand.Rand) {
	noted := history.Fault{Kind: f.kind, Begin: time.Now()}
	var err error
	noted.Target, noted.Detail, err = f.inject(ctx, s, random)
	noted.End = time.Now()
	if err != nil {
		noted.Error = err.Error()
	}
	s.injecting.Lock()
	defer s.injecting.Unlock()
	if errors.Is(err, errors.ErrUnsupported) {
		s.skipped[f.kind] = err.Error()
		return
	}
	if writing := s.faults.Write(noted); writing != nil {
		panic(writing)
	}
	fmt.Fprintf(s.out, "soak: %s %s %s\n", f.kind, noted.Target, noted.Error)
}

// pause waits, and returns false when the context ended before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// neverInjected are faults that no run shows to be harmless.
var neverInjected = map[string]string{
	"the server's clock jumps":     "the server has the clock of the machine",
	"power failure":                "a crash here is one of the server's processes, and what they have written stays",
	"failover to a lagging server": "a test of its own shows it, with two servers",
}

// skippedFaults lists what this run does not show.
func (s *soak) skippedFaults() (list []history.Skipped) {
	maps.Copy(s.skipped, neverInjected)
	for _, kind := range slices.Sorted(maps.Keys(s.skipped)) {
		list = append(list, history.Skipped{Fault: kind, Reason: s.skipped[kind]})
	}
	return list
}
