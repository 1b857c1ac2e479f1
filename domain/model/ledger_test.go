package model_test

import (
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

// ledger is what a bystander knows of a history who sees only calls and their answers. It
// keeps the promises as plain facts, and none of the state that the model has.
type ledger struct {
	jobs      map[domain.JobID]*fact
	ids       []domain.JobID      // Of jobs, in enqueue order.
	claims    []domain.ClaimedJob // Every one that was ever made; most are over.
	lastToken int64
	once      map[string]onceFact // By queue and key.
	admitted  map[string]int64    // The highest token by resource.
	marked    map[string]bool     // By job and name.
}

type fact struct {
	lane        string        // By queue and key; "" unless ordered.
	claim       *domain.Claim // The live one.
	deadline    time.Time     // Of its lease.
	status      domain.Status
	token       int64 // Of the latest claim.
	attempts    int
	maxAttempts int
	completedAt time.Time
	dropped     bool
}

type onceFact struct {
	id      domain.JobID
	expires time.Time
}

func newLedger() *ledger {
	return &ledger{
		jobs: map[domain.JobID]*fact{}, once: map[string]onceFact{},
		admitted: map[string]int64{}, marked: map[string]bool{},
	}
}

// enqueued holds that within its window one key is one job.
func (l *ledger) enqueued(t *rapid.T, now time.Time, job model.NewJob, settings domain.QueueSettings, result domain.EnqueueResult) {
	key := job.Queue + "/" + job.IdempotencyKey
	known, taken := l.once[key]
	if taken = taken && job.IdempotencyKey != "" && known.expires.After(now); taken {
		if !result.Duplicate || result.ID != known.id {
			t.Fatalf("key %s stands for job %s, and the enqueue answers %+v", key, known.id, result)
		}
		return
	}
	if result.Duplicate || l.jobs[result.ID] != nil {
		t.Fatalf("the enqueue of a new job answers %+v", result)
	}
	l.ids = append(l.ids, result.ID)
	l.jobs[result.ID] = &fact{lane: laneOf(job, settings), status: domain.StatusPending, maxAttempts: job.MaxAttempts}
	if job.IdempotencyKey != "" {
		l.once[key] = onceFact{id: result.ID, expires: now.Add(job.Delay + settings.DedupeWindow)}
	}
}

// claimed holds that tokens only grow and that a job has one live claim.
func (l *ledger) claimed(t *rapid.T, job domain.ClaimedJob, deadline time.Time) {
	if job.Generation <= l.lastToken {
		t.Fatalf("token %d comes after %d", job.Generation, l.lastToken)
	}
	l.lastToken = job.Generation
	known := l.jobs[job.ID]
	if known == nil || known.status != domain.StatusPending {
		t.Fatalf("a claim took job %s, known as %+v", job.ID, known)
	}
	known.status, known.claim, known.deadline, known.token = domain.StatusProcessing, &job.Claim, deadline, job.Generation
	known.attempts++
	if job.Attempt != known.attempts || job.Attempt > job.MaxAttempts {
		t.Fatalf("attempt %d of %d, want attempt %d", job.Attempt, job.MaxAttempts, known.attempts)
	}
	l.claims = append(l.claims, job)
}

// renewed holds that exactly the live claims whose lease has not ended are renewed.
func (l *ledger) renewed(t *rapid.T, now time.Time, lease time.Duration, claims, held []domain.Claim) {
	for _, claim := range claims {
		known := l.jobs[claim.ID]
		want := l.live(claim) && known.deadline.After(now)
		if got := slices.Contains(held, claim); got != want {
			t.Fatalf("renewal of claim %+v: %t, want %t", claim, got, want)
		}
		if want {
			known.deadline = now.Add(lease)
		}
	}
}

func (l *ledger) live(claim domain.Claim) bool {
	known := l.jobs[claim.ID]
	return known != nil && known.claim != nil && *known.claim == claim
}

// settled holds that only the live claim settles its job, and that it does.
func (l *ledger) settled(t *rapid.T, now time.Time, settlement domain.Settlement, answer domain.Settled) {
	if !l.live(settlement.Claim) {
		// An unconfirmed one may be taken for what ended its claim: nothing changes by it.
		if answer.Err == nil && !settlement.Unconfirmed {
			t.Fatalf("claim %+v is over and settled its job as %s", settlement.Claim, answer.Status)
		}
		return
	}
	known := l.jobs[settlement.Claim.ID]
	known.claim = nil
	switch settlement.Outcome.Verdict {
	case domain.Complete:
		known.status, known.completedAt = domain.StatusCompleted, now
		known.dropped = settlement.Retention == domain.RetentionDrop
	case domain.Fail:
		known.status = domain.StatusFailed
	case domain.Release:
		known.status = domain.StatusPending
		known.attempts--
	default:
		known.status = statusAfter(known.attempts, known.maxAttempts)
	}
	if answer.Err != nil || answer.Status != known.status {
		t.Fatalf("a live claim settled with %+v, want status %s", answer, known.status)
	}
}

// statusAfter is what an attempt that ended badly leaves behind.
func statusAfter(attempts, maxAttempts int) domain.Status {
	if attempts < maxAttempts {
		return domain.StatusPending
	}
	return domain.StatusDeadLetter
}

// reclaimed holds that exactly the claims whose lease has ended are taken back.
func (l *ledger) reclaimed(t *rapid.T, now time.Time, all []domain.Reclaimed) {
	for _, one := range all {
		known := l.jobs[one.Claim.ID]
		if !l.live(one.Claim) || !known.deadline.Before(now) {
			t.Fatalf("claim %+v was taken back at %s; its lease ends at %s", one.Claim, now, known.deadline)
		}
		known.claim, known.status = nil, statusAfter(known.attempts, known.maxAttempts)
		if one.Status != known.status {
			t.Fatalf("a reclaim left %s, want %s", one.Status, known.status)
		}
	}
	for id, known := range l.jobs {
		if known.claim != nil && known.deadline.Before(now) {
			t.Fatalf("the lease of job %s ended at %s, and it was not reclaimed at %s", id, known.deadline, now)
		}
	}
}

// left holds, with agrees, that a worker leaves no claim behind and no attempt spent.
func (l *ledger) left(workerID string) (held int) {
	for _, known := range l.jobs {
		if known.claim != nil && known.claim.WorkerID == workerID {
			known.giveBack()
			held++
		}
	}
	return held
}

func (f *fact) giveBack() {
	f.claim, f.status = nil, domain.StatusPending
	f.attempts--
}

// freed holds that a person takes exactly the live ones of the claims.
func (l *ledger) freed(t *rapid.T, claims []domain.Claim, done []domain.JobID) {
	for _, claim := range claims {
		live := l.live(claim)
		if live {
			l.jobs[claim.ID].giveBack()
			done = slices.DeleteFunc(done, func(id domain.JobID) bool { return id == claim.ID })
		}
	}
	if len(done) > 0 {
		t.Fatalf("of claims %+v those of %s were released", claims, done)
	}
}

// cancelled holds that exactly the jobs that are not finished are.
func (l *ledger) cancelled(t *rapid.T, asked, done []domain.JobID) {
	for _, id := range asked {
		known := l.jobs[id]
		unfinished := known.status == domain.StatusPending || known.status == domain.StatusProcessing
		if slices.Contains(done, id) != unfinished {
			t.Fatalf("the cancellation of a job in state %s: %t", known.status, !unfinished)
		}
	}
	for _, id := range done {
		l.jobs[id].status, l.jobs[id].claim = domain.StatusFailed, nil
	}
}

// purged holds that exactly the dead ones are, and that their keys are free.
func (l *ledger) purged(t *rapid.T, asked, done []domain.JobID) {
	l.areDead(t, "purge", asked, done)
	for _, id := range done {
		l.jobs[id].status, l.jobs[id].dropped = domain.StatusCompleted, true
		maps.DeleteFunc(l.once, func(_ string, held onceFact) bool { return held.id == id })
	}
}

func (l *ledger) areDead(t *rapid.T, what string, asked, done []domain.JobID) {
	for _, id := range asked {
		known := l.jobs[id]
		dead := known.status == domain.StatusFailed || known.status == domain.StatusDeadLetter
		if slices.Contains(done, id) != dead {
			t.Fatalf("the %s of a job in state %s: %t", what, known.status, !dead)
		}
	}
}

func (l *ledger) redriven(t *rapid.T, asked, done []domain.JobID) {
	l.areDead(t, "redrive", asked, done)
	for _, id := range done {
		l.jobs[id].status, l.jobs[id].attempts = domain.StatusPending, 0
	}
}

// agrees holds that no job is lost, none is completed twice, and attempts are bounded.
func (l *ledger) agrees(t *rapid.T, now time.Time, jobs []domain.JobRecord) {
	found := map[domain.JobID]domain.JobRecord{}
	for _, job := range jobs {
		found[job.ID] = job
	}
	if len(found) != len(jobs) {
		t.Fatalf("%d jobs have %d ids", len(jobs), len(found))
	}
	for id, known := range l.jobs {
		job, exists := found[id]
		if !exists {
			if !known.dropped && (known.completedAt.IsZero() || now.Sub(known.completedAt) <= domain.DefaultQueueSettings(domain.DefaultQueue).Retention) {
				t.Fatalf("job %s is lost; it was %s", id, known.status)
			}
			continue
		}
		if job.Status != known.status || job.Attempts != known.attempts || job.Generation != known.token {
			t.Fatalf("job %s is %s after %d attempts at token %d, known as %+v", id, job.Status, job.Attempts, job.Generation, known)
		}
		if job.Attempts < 0 || job.Attempts > job.MaxAttempts || (job.Status == domain.StatusProcessing) != (job.LeaseExpiresAt != nil) {
			t.Fatalf("job out of shape: %+v", job)
		}
		if known.claim != nil && (*job.ClaimedBy != known.claim.WorkerID || !job.LeaseExpiresAt.Equal(known.deadline)) {
			t.Fatalf("job %+v, claimed as %+v until %s", job, known.claim, known.deadline)
		}
	}
}
