package support

import (
	"fmt"
	"slices"
	"time"
)

// Trouble names a finding for programs.
type Trouble string

// What Status finds.
const (
	NobodyServes     Trouble = "nobody_serves"
	HouseIsNotKept   Trouble = "nobody_keeps_house"
	PausedWithJobs   Trouble = "queue_paused"
	ClaimsAreSlow    Trouble = "claims_slow"
	KeyIsHot         Trouble = "hot_key"
	HandlersAreSlow  Trouble = "handlers_slow"
	JobsWait         Trouble = "jobs_wait"
	WorkersPoll      Trouble = "workers_poll"
	DeadLettersExist Trouble = "dead_letters"
)

// troubles are what Status finds, the worst first: what stops all work, what slows it down,
// and what somebody should look at some day.
var troubles = []Trouble{
	NobodyServes, HouseIsNotKept, PausedWithJobs, ClaimsAreSlow, KeyIsHot, HandlersAreSlow, JobsWait, WorkersPoll, DeadLettersExist,
}

const (
	// longWait is how long a due job may wait: five times the 2 s after which a job is any
	// worker's, so that a wrong ring or one busy owner is no finding.
	longWait = 10 * time.Second

	// slowClaim is how long the 99th of 100 claims may take: a worker halves its batches when
	// one takes longer.
	slowClaim = 50 * time.Millisecond

	// hotKeyJobs is how many jobs must wait before their keys are compared: of fewer, a few
	// enqueues at once are most.
	hotKeyJobs = 100

	// hotKeyShare is the share of the head of a queue from which one key is hot: without it
	// the queue would be half as long.
	hotKeyShare = 0.5
)

// queueRules are those that look at one queue.
var queueRules = []func(q queueSight) (Finding, bool){
	nobodyServes, pausedWithJobs, keyIsHot, handlersAreSlow, jobsWait, deadLetters,
}

func nobodyServes(q queueSight) (Finding, bool) {
	return Finding{
		Code:  NobodyServes,
		Seen:  fmt.Sprintf("%s due, the oldest for %s, and no live worker serves the queue", q.Ready, span(q.waited())),
		Means: fmt.Sprintf("nobody works on queue %s", q.Queue),
		Do:    fmt.Sprintf("start a worker of queue %s; holdfast workers list --all prints those that were there", q.Queue),
	}, q.Ready.Jobs > 0 && !q.settings.Paused && len(q.serving) == 0
}

func pausedWithJobs(q queueSight) (Finding, bool) {
	return Finding{
		Code:  PausedWithJobs,
		Seen:  fmt.Sprintf("%s due, the oldest for %s, and the queue is paused", q.Ready, span(q.waited())),
		Means: fmt.Sprintf("queue %s is paused", q.Queue),
		Do:    "holdfast queues resume " + q.Queue,
	}, q.Ready.Jobs > 0 && q.settings.Paused
}

func keyIsHot(q queueSight) (Finding, bool) {
	return Finding{
		Code:  KeyIsHot,
		Seen:  fmt.Sprintf("%.0f %% of %d jobs at the head of the queue have the key %s", 100*q.hottest().Share, q.sample.Jobs, q.hottest().Key),
		Means: fmt.Sprintf("one key holds up queue %s: all its jobs are in one bucket, and on an ordered queue they run one at a time", q.Queue),
		Do:    "spread the key over several with holdfast.Shard; holdfast keys hot --queue " + q.Queue,
	}, q.works() && q.sample.Jobs >= hotKeyJobs && q.hottest().Share >= hotKeyShare
}

func handlersAreSlow(q queueSight) (Finding, bool) {
	slots := 0
	for _, each := range q.serving {
		slots += each.says.Concurrency
	}
	return Finding{
		Code:  HandlersAreSlow,
		Seen:  fmt.Sprintf("%s due, the oldest for %s, and all %d slots of %s are taken", q.Ready, span(q.waited()), slots, counted(len(q.serving), "live worker")),
		Means: fmt.Sprintf("handlers are the bottleneck of queue %s: claims are quick, and no slot is free", q.Queue),
		Do:    "add concurrency (4 to 16 suit most work, twice the cores where handlers wait), then workers; see what they wait for",
	}, q.works() && q.waited() > longWait && q.allBusy()
}

// jobsWait is for what no other rule explains.
func jobsWait(q queueSight) (Finding, bool) {
	return Finding{
		Code:  JobsWait,
		Seen:  fmt.Sprintf("%s due, the oldest for %s, and slots are free", q.Ready, span(q.waited())),
		Means: fmt.Sprintf("jobs of queue %s wait though workers have slots to spare", q.Queue),
		Do:    fmt.Sprintf("holdfast jobs list --queue %s --state ready --limit 1, then holdfast jobs explain ID", q.Queue),
	}, q.works() && q.waited() > longWait && !q.allBusy()
}

func deadLetters(q queueSight) (Finding, bool) {
	return Finding{
		Code:  DeadLettersExist,
		Seen:  fmt.Sprintf("%s failed or dead-lettered", q.Dead()),
		Means: fmt.Sprintf("jobs of queue %s have ended without success", q.Queue),
		Do:    fmt.Sprintf("holdfast dead groups --queue %s", q.Queue),
	}, q.Dead().Jobs > 0
}

// works tells whether the queue is open and somebody serves it.
func (q queueSight) works() bool { return !q.settings.Paused && len(q.serving) > 0 }

func (q queueSight) allBusy() bool {
	return !slices.ContainsFunc(q.serving, func(w fleetWorker) bool { return !w.isBusy() })
}

func (s sight) nobodyKeepsHouse() (Finding, bool) {
	interval := defaults.Housekeeping
	for _, each := range s.fleet.workers {
		interval = max(interval, each.housekeeping())
	}
	return Finding{
		Code:  HouseIsNotKept,
		Seen:  fmt.Sprintf("a lease ended %s ago and was not taken back, for more than %d intervals of housekeeping (%s)", span(s.overdue), housekeepingRounds, span(interval)),
		Means: "nobody keeps house: what dead workers held does not come back",
		Do:    "start a worker, of any queue; if some are alive, look in their logs for \"cannot reclaim\"; holdfast leases list --expired",
	}, s.overdue > housekeepingRounds*interval
}

func (s sight) claimsAreSlow() (Finding, bool) {
	slowest := fleetWorker{}
	for _, each := range s.fleet.workers {
		if each.isLive() && each.says.ClaimP99 > slowest.says.ClaimP99 {
			slowest = each
		}
	}
	return Finding{
		Code:  ClaimsAreSlow,
		Seen:  fmt.Sprintf("of 100 claims of worker %s the slowest took %.0f ms, more than %d", slowest.ID, slowest.says.ClaimP99, slowClaim.Milliseconds()),
		Means: "claims are the bottleneck: their plan is wrong, they wait for locks, or an old transaction keeps dead rows in the table",
		Do:    "holdfast doctor checks the plans, the locks and the table",
	}, asDuration(slowest.says.ClaimP99/1000) > slowClaim
}

func (s sight) workersPoll() (Finding, bool) {
	speaking, polling := 0, 0
	for _, each := range s.fleet.workers {
		if each.isLive() && each.hasBeaten() {
			speaking++
			if each.says.Wake == "poll" {
				polling++
			}
		}
	}
	busy := slices.ContainsFunc(s.queues, func(q queueSight) bool { return q.waited() > longWait })
	return Finding{
		Code:  WorkersPoll,
		Seen:  fmt.Sprintf("%s, and none hears notifications", counted(polling, "live worker")),
		Means: "workers poll an idle database, and a job waits for the next poll",
		Do:    "give workers an address without a pooler to listen on: --direct-url, or Config.DirectURL",
	}, speaking > 0 && polling == speaking && !busy
}
