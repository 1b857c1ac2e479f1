package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

const (
	// probePatience bounds what a probe asks the database.
	probePatience = 2 * time.Second

	// probeHolds is for how long its answer is given again, however often the probe is asked.
	probeHolds = time.Second
)

// ProbeReport is what /livez and /readyz answer: with status 200 if OK, else with 503.
type ProbeReport struct {
	OK     bool         `json:"ok"`
	Checks []ProbeCheck `json:"checks"`
}

// ProbeCheck is one of the things that must hold.
type ProbeCheck struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	Why   string `json:"why,omitempty"` // It is not.
}

// probes answer for a worker.
type probes struct {
	worker *holdfast.Worker
	db     domain.DBTX

	mutex    sync.Mutex
	asked    time.Time
	database []ProbeCheck
}

// live tells whether the worker's loops come round. What a restart would not mend does not count.
func (p *probes) live() ProbeReport {
	var checks []ProbeCheck
	for _, stall := range p.worker.Health().Stalled {
		checks = append(checks, ProbeCheck{Check: stall.Loop, Why: fmt.Sprintf(
			"the loop has not come round for %s, and %s is the most that it may take", stall.Silent.Round(time.Second), stall.Limit.Round(time.Second))})
	}
	if checks == nil {
		checks = []ProbeCheck{{Check: "loops", OK: true}}
	}
	return newProbeReport(checks)
}

// ready tells whether the worker can take jobs.
func (p *probes) ready(ctx context.Context) ProbeReport {
	check := ProbeCheck{Check: "worker", OK: true}
	switch state := p.worker.Health().State; state {
	case worker.StateWorking:
	case worker.StateJoining:
		check = ProbeCheck{Check: "worker", Why: "it has not joined yet"}
	default:
		check = ProbeCheck{Check: "worker", Why: fmt.Sprintf("it is %s: it claims no more jobs", state)}
	}
	return newProbeReport(append([]ProbeCheck{check}, p.askDatabase(ctx)...))
}

func newProbeReport(checks []ProbeCheck) ProbeReport {
	report := ProbeReport{OK: true, Checks: checks}
	for _, check := range checks {
		report.OK = report.OK && check.OK
	}
	return report
}

// askDatabase asks again once the last answer is old.
func (p *probes) askDatabase(ctx context.Context) []ProbeCheck {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.database == nil || time.Since(p.asked) >= probeHolds {
		// Whoever asked may be gone before the answer comes, and the next one gets it too.
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), probePatience)
		defer cancel()
		p.database = databaseChecks(domain.ReadMeta(bounded, p.db))
		p.asked = time.Now()
	}
	return p.database
}

// databaseChecks reads what became of a look at the installation. The driver's errors name hosts
// and users; they are in the worker's log, and not for everybody who can reach the port.
func databaseChecks(meta domain.Meta, err error) []ProbeCheck {
	database, schema := ProbeCheck{Check: "database", OK: true}, ProbeCheck{Check: "schema", OK: true}
	var misfit *domain.SchemaError
	switch {
	case errors.As(err, &misfit):
		schema.OK, schema.Why = false, misfit.Error()
	case errors.Is(err, domain.ErrNotMigrated):
		schema.OK, schema.Why = false, domain.ErrNotMigrated.Error()
	case err != nil:
		database.OK, database.Why = false, fmt.Sprintf("it does not answer within %s: the worker's log says why", probePatience)
		schema.OK, schema.Why = false, "nobody knows"
	case meta.Standby:
		database.OK, database.Why = false, domain.ErrStandby.Error()
	}
	return []ProbeCheck{database, schema}
}
