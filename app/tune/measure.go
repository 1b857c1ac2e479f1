package tune

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/holdfast-pg/holdfast/app/support"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

// Where values come from that were measured.
const (
	FromWorkers = "workers"
	FromQueue   = "queue"
	FromServer  = "server"
)

// lookEvery is how often arrivals are counted: what is counted each time are those of the last
// minute, or the newest 2,000.
const lookEvery = 5 * time.Second

// Measured is what a database tells of the work of a queue. What it does not tell is zero.
type Measured struct {
	Rate        float64 // Jobs that came in a second, the mean of all looks.
	Hidden      bool    // Completed jobs are dropped, so that arrivals cannot be counted.
	P50, P99    time.Duration
	HotShare    float64 // Of the jobs that wait.
	Workers     int
	Connections int // That the server has, without those of others.
	Current     Current
}

// Measure looks at a queue for a time; cores are those of a worker's machine, which the database
// does not know. Errors: domain.ErrUnknownQueue, the context's, and those
// of the database.
func Measure(ctx context.Context, db domain.DBTX, queue string, duration time.Duration, cores int) (Measured, error) {
	settings, err := domain.FindQueue(ctx, db, queue)
	if err != nil {
		return Measured{}, err
	}
	m := Measured{Hidden: settings.RetentionMode == domain.RetentionDrop}
	m.Current = Current{Values: Defaults(cores), From: map[string]string{}}
	m.Current.Queue = settings
	m.Current.know(FromQueue, "ordered", "retention-mode", "retention", "ring")
	if m.Rate, err = arrivals(ctx, db, queue, duration); err != nil {
		return m, err
	}
	if err := m.readKeys(ctx, db, queue); err != nil {
		return m, err
	}
	said, err := support.Serving(ctx, db, queue)
	if err != nil {
		return m, err
	}
	m.believe(said)
	return m, m.readServer(ctx, db, said)
}

// Given says what of a workload a person has said, so that it is not taken from what was measured.
type Given struct {
	Rate, P50, P99, Workers, Ordered, HotShare, Connections bool
}

// Fill completes a workload with what was measured. Errors: that something was not to be seen and
// has to be said.
func (m Measured) Fill(w Workload, given Given) (Workload, error) {
	switch {
	case !given.Rate && m.Hidden:
		return w, errors.New("the queue drops completed jobs, so that those that came cannot be counted: give --rate")
	case !given.Rate && m.Rate == 0:
		return w, errors.New("no job came meanwhile: measure for longer, or give --rate")
	case m.P99 == 0 && (!given.P50 || !given.P99):
		return w, errors.New("no live worker of the queue says how long its handlers take: start one, or give --p50 and --p99")
	}
	fill(&w.Rate, m.Rate, given.Rate)
	fill(&w.P50, Seconds(m.P50), given.P50)
	fill(&w.P99, Seconds(max(m.P99, time.Duration(w.P50))), given.P99)
	fill(&w.Workers, max(m.Workers, 1), given.Workers)
	fill(&w.Ordered, m.Current.Queue.Ordered, given.Ordered)
	fill(&w.HotShare, m.HotShare, given.HotShare)
	fill(&w.Connections, m.Connections, given.Connections)
	return w, nil
}

func fill[T any](field *T, measured T, given bool) {
	if !given {
		*field = measured
	}
}

// know notes where settings come from.
func (c Current) know(from string, settings ...string) {
	for _, setting := range settings {
		c.From[setting] = from
	}
}

// arrivals is the mean rate at which jobs come, over looks that last for a time.
func arrivals(ctx context.Context, db domain.DBTX, queue string, duration time.Duration) (float64, error) {
	sum, looks := 0.0, 0
	for left := duration; left > 0; left -= lookEvery {
		timer := time.NewTimer(min(lookEvery, left))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return 0, ctx.Err()
		}
		loads, err := domain.QueueLoads(ctx, db, queue)
		if err != nil {
			return 0, err
		}
		sum += loads[0].Arrivals.PerSecond
		looks++
	}
	return sum / float64(max(looks, 1)), nil
}

// leastSample is how many jobs must wait before their keys are compared.
const leastSample = 100

func (m *Measured) readKeys(ctx context.Context, db domain.DBTX, queue string) error {
	sample, err := domain.HotKeys(ctx, db, queue, 1)
	if err == nil && sample.Jobs >= leastSample && len(sample.Keys) > 0 {
		m.HotShare = sample.Keys[0].Share
	}
	return err
}

// believe takes over what the live workers say. Where they differ the least slots, the slowest
// handlers and the shortest lease count: those of whoever falls behind first.
func (m *Measured) believe(said []worker.Facts) {
	c := worker.Config{}.WithDefaults()
	spoken := 0
	for i, facts := range said {
		if facts.HandleP99 > 0 {
			spoken++
			m.P50 += milliseconds(facts.HandleP50)
			m.P99 = max(m.P99, milliseconds(facts.HandleP99))
		}
		if i == 0 {
			c = configOf(facts)
			continue
		}
		other := configOf(facts)
		c.Concurrency, c.Lease = min(c.Concurrency, other.Concurrency), min(c.Lease, other.Lease)
		c.Connections, c.Housekeeping = max(c.Connections, other.Connections), max(c.Housekeeping, other.Housekeeping)
	}
	m.Workers = len(said)
	if spoken > 0 {
		m.P50 = max(m.P50/time.Duration(spoken), time.Microsecond) // What workers say ends there.
	}
	m.Current.Worker = c
	if len(said) > 0 {
		m.Current.know(FromWorkers, "Concurrency", "Affinity", "Lease", "WorkerTTL", "Housekeeping", "Connections")
	}
}

// configOf is the configuration of a worker as far as it says.
func configOf(facts worker.Facts) worker.Config {
	ttl := asSeconds(facts.WorkerTTL)
	return worker.Config{
		Concurrency: facts.Concurrency, Affinity: facts.Affinity, Connections: facts.Connections,
		Lease: asSeconds(facts.Lease), WorkerTTL: ttl, Heartbeat: ttl / worker.BeatsPerTTL, Housekeeping: asSeconds(facts.Housekeeping),
	}.WithDefaults()
}

func asSeconds(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// readServer reads the server's settings, and what it has for the workers: all connections but
// those that it reserves and those that others use.
func (m *Measured) readServer(ctx context.Context, db domain.DBTX, said []worker.Facts) error {
	server, err := domain.ReadServer(ctx, db)
	if err != nil {
		return err
	}
	theirs := 0
	for _, facts := range said {
		theirs += facts.Connections + 1
	}
	others := max(0, int(server.UsedConnections)-theirs)
	m.Connections = max(1, int(server.MaxConnections-server.ReservedConnections)-others)
	settings, err := domain.Settings(ctx, db, "max_wal_size", "synchronous_commit", "autovacuum")
	if err != nil {
		return err
	}
	meta, err := domain.ReadMeta(ctx, db)
	if err != nil {
		return err
	}
	m.Current.Worker.Buckets = meta.BucketCount
	const megabyte = 1 << 20 // The unit of max_wal_size.
	wal, _ := strconv.ParseInt(settings["max_wal_size"].Value, 10, 64)
	m.Current.Server = Server{
		MaxConnections: int(server.MaxConnections), MaxWAL: wal * megabyte,
		SynchronousCommit: settings["synchronous_commit"].Value, Autovacuum: settings["autovacuum"].Value,
	}
	m.Current.know(FromServer, "Buckets", "max_connections", "max_wal_size", "synchronous_commit", "autovacuum")
	return nil
}
