package worker

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// Affinity says which jobs are a worker's to claim. Either way no promise depends on it.
type Affinity string

// The sorts of affinity.
const (
	// AffinityRing gives each bucket, and with it each partition key, to one of the live
	// workers of a queue: related jobs meet in one process, and workers do not compete for
	// rows. A job that nobody has claimed for 2 s is anybody's.
	AffinityRing Affinity = "ring"

	// AffinityNone lets any worker claim any job, which spreads few long jobs best.
	AffinityNone Affinity = "none"
)

// Config says how a worker works. The zero value of every field is the default named here.
type Config struct {
	// Queues are the queues to serve, in turns. Default: "default".
	Queues []string

	// Concurrency is how many handlers run at once. Default: 8; 4 to 16 suit most work,
	// twice the cores if handlers wait for I/O.
	Concurrency int

	// ClaimBatch is the most jobs that one claim takes; four times as many may wait in the worker
	// for a slot. Claims begin with 25 and grow while there is a backlog and a claim takes less than
	// 25 ms. Beyond the free slots a worker claims no more than its handlers, as quick as they
	// were of late, start within 40 ms or the time of three claims. Default: 500.
	ClaimBatch int

	// Affinity says which jobs are the worker's to claim. Default: AffinityRing.
	Affinity Affinity

	// RingCache is how long the worker goes by what it knows of the other workers, and so how
	// long it takes to notice that one came, left or died. Default: 8 s, or WorkerTTL if that is
	// less, which is also the most.
	RingCache time.Duration

	// Buckets is how many buckets the installation is expected to have; the worker refuses to
	// start when it has another number. 360 to 1,024 suit most, ten times the workers at
	// least. Default: as many as it has (1,024 unless it was made with another number).
	Buckets int

	// Lease is how long a claim holds unless it is renewed, and so the longest that a dead
	// worker keeps its jobs. Default: 90 s; at least 3 times the p99 of short handlers.
	Lease time.Duration

	// RenewEvery is how often each held lease is renewed. Default: a third of Lease, which
	// is also the most.
	RenewEvery time.Duration

	// LeaseMargin is how long before the end of a lease the worker gives the job up by
	// itself when no renewal got through. Default: a tenth of Lease; less than Lease less
	// RenewEvery.
	LeaseMargin time.Duration

	// Heartbeat is how often the worker says that it lives. Default: 10 s.
	Heartbeat time.Duration

	// WorkerTTL is how long a worker counts as alive without a heartbeat. Default: 30 s; at
	// least 3 heartbeats.
	WorkerTTL time.Duration

	// Housekeeping is how often the worker reclaims ended leases and tidies up, give or take
	// a tenth. Default: 30 s.
	Housekeeping time.Duration

	// ActivePoll is the first wait after a claim that found nothing; each further one
	// doubles it up to IdlePoll. Default: 75 ms.
	ActivePoll time.Duration

	// IdlePoll is the longest wait between claims, plus up to a third as jitter; a wait ends
	// before it when the next known job is due. A job that is enqueued for more than 2 s later
	// rings nobody, so a longer wait may find it late. Default: 1.5 s.
	IdlePoll time.Duration

	// PollOnly keeps the worker from listening for new jobs; it finds them by polling.
	// Default: it listens, and polls if notifications do not arrive.
	PollOnly bool

	// DirectURL is the database's address for listening, when the pool goes through a pooler
	// in transaction mode, which passes no notification on. Used by holdfast.NewWorker.
	// Default: the pool's own.
	DirectURL string

	// Connections is how many connections the worker opens for itself at most, besides the
	// one that listens: half of them, rounded down, for settlements, renewals and heartbeats
	// alone. Used by holdfast.NewWorker. Default: 7; at least 4. Handlers use the pool.
	Connections int

	// PayloadWarning is the size in bytes from which a payload is worth a warning, once a
	// kind: larger ones slow claims down. Default: 2,048.
	PayloadWarning int

	// DrainDeadline is how long a stopping worker lets handlers finish before it cancels
	// them and gives their jobs back. Default: 25 s.
	DrainDeadline time.Duration

	// Version goes into the registry, for people. Default: "".
	Version string

	// Gate holds claims back while it is closed. Default: none, which is always open.
	Gate *Gate

	// Says tells what else the worker says of itself in the registry, as JSON under "more", at
	// every heartbeat; keep it under 1 KB. Default: nothing.
	Says func() any

	// Logger gets what the worker has to say. Default: slog.Default().
	Logger *slog.Logger

	// Observer is told what the worker does; package telemetry has one for OpenTelemetry.
	// Default: nobody is told anything.
	Observer Observer

	// Clock times the loop. Default: SystemClock.
	Clock Clock

	// Random returns numbers in [0, 1) for jitter. It is called from many goroutines.
	// Default: math/rand/v2.Float64.
	Random func() float64

	// NewID returns a new id for each try to join: at the start, after a reply that was lost,
	// and when the worker has to rejoin. Default: host, process id and 64 random bits.
	NewID func() string
}

// WithDefaults returns the configuration with every zero field replaced by its default.
func (c Config) WithDefaults() Config {
	if len(c.Queues) == 0 {
		c.Queues = []string{domain.DefaultQueue}
	}
	setDefault(&c.Concurrency, 8)
	setDefault(&c.ClaimBatch, 500)
	setDefault(&c.Affinity, AffinityRing)
	setDefault(&c.Lease, 90*time.Second)
	setDefault(&c.RenewEvery, c.Lease/RenewalsPerLease)
	setDefault(&c.LeaseMargin, c.Lease/MarginsPerLease)
	setDefault(&c.Heartbeat, 10*time.Second)
	setDefault(&c.WorkerTTL, BeatsPerTTL*c.Heartbeat)
	setDefault(&c.RingCache, min(8*time.Second, c.WorkerTTL))
	setDefault(&c.Housekeeping, 30*time.Second)
	setDefault(&c.ActivePoll, 75*time.Millisecond)
	setDefault(&c.IdlePoll, 1500*time.Millisecond)
	setDefault(&c.Connections, domain.DefaultConnections)
	setDefault(&c.PayloadWarning, 2048)
	setDefault(&c.DrainDeadline, 25*time.Second)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Clock == nil {
		c.Clock = SystemClock{}
	}
	if c.Random == nil {
		c.Random = mathrand.Float64
	}
	if c.NewID == nil {
		c.NewID = newID
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate checks a configuration with its defaults filled in and returns every relation
// that does not hold, each with both values.
func (c Config) Validate() error {
	c = c.WithDefaults()
	var broken []error
	demand := func(holds bool, format string, args ...any) {
		if !holds {
			broken = append(broken, fmt.Errorf(format, args...))
		}
	}
	for _, setting := range []struct {
		name     string
		positive bool
		value    any
	}{
		{"Concurrency", c.Concurrency > 0, c.Concurrency},
		{"ClaimBatch", c.ClaimBatch > 0, c.ClaimBatch},
		{"RingCache", c.RingCache > 0, c.RingCache},
		{"Lease", c.Lease > 0, c.Lease},
		{"RenewEvery", c.RenewEvery > 0, c.RenewEvery},
		{"LeaseMargin", c.LeaseMargin > 0, c.LeaseMargin},
		{"Heartbeat", c.Heartbeat > 0, c.Heartbeat},
		{"WorkerTTL", c.WorkerTTL > 0, c.WorkerTTL},
		{"Housekeeping", c.Housekeeping > 0, c.Housekeeping},
		{"ActivePoll", c.ActivePoll > 0, c.ActivePoll},
		{"IdlePoll", c.IdlePoll > 0, c.IdlePoll},
		{"PayloadWarning", c.PayloadWarning > 0, c.PayloadWarning},
		{"DrainDeadline", c.DrainDeadline > 0, c.DrainDeadline},
	} {
		demand(setting.positive, "%s must be positive, it is %v", setting.name, setting.value)
	}
	demand(c.RenewEvery <= c.Lease/RenewalsPerLease, "RenewEvery (%s) must be at most a third of Lease (%s): one renewal may get lost", c.RenewEvery, c.Lease)
	demand(c.LeaseMargin < c.Lease-c.RenewEvery, "LeaseMargin (%s) must be less than Lease (%s) less RenewEvery (%s)", c.LeaseMargin, c.Lease, c.RenewEvery)
	demand(c.WorkerTTL >= BeatsPerTTL*c.Heartbeat, "WorkerTTL (%s) must be at least three times Heartbeat (%s)", c.WorkerTTL, c.Heartbeat)
	demand(c.RingCache <= c.WorkerTTL, "RingCache (%s) must be at most WorkerTTL (%s): a dead worker's buckets would stay without an owner for longer", c.RingCache, c.WorkerTTL)
	demand(c.Affinity == AffinityRing || c.Affinity == AffinityNone, "Affinity (%q) must be %q or %q", c.Affinity, AffinityRing, AffinityNone)
	demand(c.Buckets >= 0, "Buckets (%d) must not be negative", c.Buckets)
	demand(c.Connections >= domain.MinConnections, "Connections (%d) must be at least %d: two for settlements, renewals and heartbeats, which never wait for a claim, and two for claims and housekeeping", c.Connections, domain.MinConnections)
	demand(c.ActivePoll <= c.IdlePoll, "ActivePoll (%s) must be at most IdlePoll (%s)", c.ActivePoll, c.IdlePoll)
	if broken != nil {
		return fmt.Errorf("worker configuration: %w", errors.Join(broken...))
	}
	return nil
}

// newID names the host and the process for people and adds 64 random bits, because both
// repeat in containers.
func newID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	var nonce [8]byte
	_, _ = rand.Read(nonce[:])
	// A host name may have 253 characters; an id has at most 200.
	return fmt.Sprintf("%.150s-%d-%s", host, os.Getpid(), hex.EncodeToString(nonce[:]))
}
