package doctor

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

// patient is the database under examination, and what more than one check asks of it.
type patient struct {
	pool    *pgxpool.Pool
	options Options

	server domain.Server
	sent   time.Time // When the server was asked for its clock, by this machine's.
	took   time.Duration
	pooled bool // Somebody answers in the server's place.

	settings map[string]domain.Setting
	meta     domain.Meta
	unfit    error // Why the tables cannot be read, or nil.
	workers  []liveWorker
	found    map[string]bool // The checks that have found something.
}

// liveWorker is a worker that is alive, and what it says of itself.
type liveWorker struct {
	worker.Facts
	ID string
}

// mostWorkers and mostQueues bound what is read of each.
const (
	mostWorkers = 1000
	mostQueues  = 100
)

func newPatient(ctx context.Context, pool *pgxpool.Pool, options Options) (*patient, error) {
	p := &patient{pool: pool, options: options, found: map[string]bool{}}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	// The first answer pays for the connection and for what the driver asks before.
	for range 2 {
		p.sent = options.Now()
		began := time.Now()
		if p.server, err = domain.ReadServer(ctx, conn); err != nil {
			return nil, err
		}
		p.took = time.Since(began)
	}
	// A pooler tells its clients a process id of its own making.
	p.pooled = p.server.BackendPid != int32(conn.Conn().PgConn().PID())
	if p.settings, err = domain.Settings(ctx, conn, settingNames()...); err != nil {
		return nil, err
	}
	return p, p.readTables(ctx)
}

// readTables reads what the checks of the work in them need, if the schema is there.
func (p *patient) readTables(ctx context.Context) error {
	p.meta, p.unfit = domain.ReadMeta(ctx, p.pool)
	if p.unfit != nil {
		var refused *pgconn.PgError
		var schema *domain.SchemaError
		if errors.As(p.unfit, &refused) || errors.As(p.unfit, &schema) || errors.Is(p.unfit, pgx.ErrNoRows) {
			return nil
		}
		return p.unfit
	}
	return p.readWorkers(ctx)
}

func (p *patient) readWorkers(ctx context.Context) error {
	records, err := domain.ListWorkers(ctx, p.pool, false, mostWorkers)
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		p.unfit = err
		return nil
	}
	if err != nil {
		return err
	}
	for _, record := range records {
		said := worker.ReadFacts(record.Metadata)
		// One of a version that says less has the defaults.
		said.Lease, said.WorkerTTL, said.Housekeeping = cmp.Or(said.Lease, 90), cmp.Or(said.WorkerTTL, 30), cmp.Or(said.Housekeeping, 30)
		said.Connections = cmp.Or(said.Connections, domain.DefaultConnections)
		if record.Status == domain.WorkerAlive && record.Silence.Seconds() < said.WorkerTTL {
			p.workers = append(p.workers, liveWorker{said, record.ID})
		}
	}
	return nil
}

// skips says why a check does not run; "" if it does.
func (p *patient) skips(check check) string {
	switch {
	case check.schema && p.unfit != nil:
		return "the schema does not fit this program"
	case check.id == schemaDrift.id && p.meta.SchemaVersion != domain.SchemaVersion:
		return "the schema is of another version than this program"
	case check.id == planContract.id && p.found[schemaDrift.id]:
		return "the schema differs from what the statements were written for"
	case check.id == notifications.id && p.server.Standby:
		return "a standby takes no notifications"
	}
	return ""
}

// setting returns how a setting stands; "" if this server does not know it.
func (p *patient) setting(name string) string { return p.settings[name].Value }
