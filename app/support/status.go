package support

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// mostQueues is how many queues Status looks at, in the order of their names.
const mostQueues = 200

// Status is how an installation stands.
type Status struct {
	Healthy    bool               `json:"healthy"` // There is no finding.
	Verdict    string             `json:"verdict"` // What the first finding means, or that there is none.
	Do         string             `json:"do"`      // The first move.
	Findings   []Finding          `json:"findings"`
	Workers    Workforce          `json:"workers"`
	Queues     []domain.QueueLoad `json:"queues"`
	MoreQueues bool               `json:"more_queues"` // There are more queues than were looked at.
}

// Finding is one thing that is not as it should be. The first of a list is the worst.
type Finding struct {
	Code  Trouble `json:"code"`
	Queue string  `json:"queue"` // "" for what concerns no queue in particular.
	Seen  string  `json:"seen"`
	Means string  `json:"means"` // The likely bottleneck.
	Do    string  `json:"do"`    // The first move.
}

// Workforce is all workers together.
type Workforce struct {
	Live        int `json:"live"`
	Draining    int `json:"draining"`
	Silent      int `json:"silent"`      // Registered as alive, and not seen within their time to live.
	Concurrency int `json:"concurrency"` // Slots of the live ones.
	InFlight    int `json:"in_flight"`   // Jobs that the live ones said they held.
}

// ReadStatus looks at everything and says what to see to first.
func ReadStatus(ctx context.Context, db domain.Snapshotter) (status Status, err error) {
	err = domain.Snapshot(ctx, db, func(db domain.DBTX) error {
		seen, err := look(ctx, db)
		if err != nil {
			return err
		}
		status = seen.status()
		return nil
	})
	return status, err
}

// sight is what the rules of Status go by.
type sight struct {
	fleet   *fleet
	queues  []queueSight
	more    bool
	overdue time.Duration // How long the lease has been over that ended first, of those not taken back.
}

type queueSight struct {
	domain.QueueLoad

	settings domain.QueueSettings
	sample   domain.KeySample // Of the head of the queue, where enough waits to tell.
	serving  []fleetWorker    // The live workers.
}

func look(ctx context.Context, db domain.DBTX) (seen sight, err error) {
	if seen.fleet, err = readFleet(ctx, db); err != nil {
		return seen, err
	}
	queues, err := domain.ListQueues(ctx, db, mostQueues+1)
	if err != nil {
		return seen, err
	}
	seen.more = len(queues) > mostQueues
	queues = queues[:min(len(queues), mostQueues)]
	names := make([]string, len(queues))
	for i, queue := range queues {
		names[i] = queue.Name
	}
	loads, err := domain.QueueLoads(ctx, db, names...)
	if err != nil {
		return seen, err
	}
	for i, load := range loads {
		queue := queueSight{QueueLoad: load, settings: queues[i], serving: seen.fleet.serving(load.Queue)}
		if queue.Ready.Jobs >= hotKeyJobs {
			if queue.sample, err = domain.HotKeys(ctx, db, load.Queue, mostHotKeys); err != nil {
				return seen, err
			}
		}
		seen.queues = append(seen.queues, queue)
	}
	seen.overdue, err = longestOverdue(ctx, db)
	return seen, err
}

func longestOverdue(ctx context.Context, db domain.DBTX) (overdue time.Duration, err error) {
	page, err := domain.ListLeases(ctx, db, domain.JobFilter{Limit: 1000}, true)
	for _, job := range page.Items {
		overdue = max(overdue, -asDuration(*job.LeaseLeftSeconds))
	}
	return overdue, err
}

func asDuration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// hottest is the key that most jobs at the head of the queue have.
func (q queueSight) hottest() (hottest domain.KeyShare) {
	if len(q.sample.Keys) > 0 {
		hottest = q.sample.Keys[0]
	}
	return hottest
}

// waited is how long the oldest due job has been due.
func (q queueSight) waited() time.Duration {
	if q.OldestAgeSeconds == nil {
		return 0
	}
	return asDuration(*q.OldestAgeSeconds)
}

func (s sight) status() Status {
	status := Status{Findings: s.findings(), Workers: s.workforce(), Queues: []domain.QueueLoad{}, MoreQueues: s.more}
	var longest time.Duration
	for _, queue := range s.queues {
		status.Queues = append(status.Queues, queue.QueueLoad)
		longest = max(longest, queue.waited())
	}
	if len(status.Findings) > 0 {
		status.Verdict, status.Do = status.Findings[0].Means, status.Findings[0].Do
		return status
	}
	status.Healthy = true
	status.Verdict = fmt.Sprintf("healthy: %s live", counted(status.Workers.Live, "worker"))
	status.Do = "nothing"
	if longest > 0 {
		status.Verdict += fmt.Sprintf(", and the oldest due job has waited for %s", span(longest))
	}
	return status
}

func (s sight) workforce() (all Workforce) {
	for _, each := range s.fleet.workers {
		switch {
		case each.isLive():
			all.Live++
			all.Concurrency += each.says.Concurrency
			all.InFlight += each.says.InFlight
		case each.isDraining():
			all.Draining++
		default:
			all.Silent++
		}
	}
	return all
}

// findings asks every rule of every queue, the worst rule first.
func (s sight) findings() []Finding {
	findings := []Finding{}
	add := func(found Finding, is bool) {
		if is {
			findings = append(findings, found)
		}
	}
	for _, queue := range s.queues {
		for _, rule := range queueRules {
			found, is := rule(queue)
			found.Queue = queue.Queue
			add(found, is)
		}
	}
	add(s.nobodyKeepsHouse())
	add(s.claimsAreSlow())
	add(s.workersPoll())
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Compare(slices.Index(troubles, a.Code), slices.Index(troubles, b.Code))
	})
	return findings
}
