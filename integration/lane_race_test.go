package integration

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// laneRace is a race of claimers for the lanes of one queue, and what a bystander sees of it:
// every event is noted by the process, in the order of one counter, from calls and their
// answers alone.
type laneRace struct {
	*testing.T
	database *pgtest.Database
	jobs     int
	clock    atomic.Int64

	mutex     sync.Mutex
	committed map[domain.JobID]int64 // When the enqueue's commit had returned.
	claims    map[string][]*laneClaim
	completed map[domain.JobID]int
	redriven  map[domain.JobID]bool
	toCome    int // Jobs that are still to be enqueued.
	kills     int // Claimers that are still to vanish.
}

// laneClaim is one claim: it was held from some moment before got to some moment after ended.
type laneClaim struct {
	job     domain.ClaimedJob
	asked   int64 // Before the call that claimed it.
	got     int64 // After that.
	ended   int64 // Before the call that ended it.
	endedAs domain.Status
}

// Eight claimers empty 200 lanes of 20,000 jobs. A tenth of these they enqueue meanwhile, to
// lanes that are nearly empty, in transactions that commit out of the order of seq. One claim
// in ten is retried, one in ten released, one in fifty fails and is redriven at once; three
// claimers vanish with their claims.
func TestInOrder_RacingClaimersKeepEveryLane(t *testing.T) {
	t.Parallel()
	const claimers, jobs = 8, 20000
	database, _ := newOrdered(t)
	database.Exec(t, "CREATE TABLE journal (generation bigint PRIMARY KEY, processing bigint NOT NULL)")
	race := &laneRace{
		T: t, database: database, jobs: jobs, toCome: jobs / 10, kills: 3,
		committed: map[domain.JobID]int64{}, claims: map[string][]*laneClaim{},
		completed: map[domain.JobID]int{}, redriven: map[domain.JobID]bool{},
	}
	race.enqueue(rand.New(rand.NewPCG(1, 1)), "long:", 180, jobs-jobs/10)()
	atOnce(claimers, func(i int) {
		random, queue := rand.New(rand.NewPCG(2, uint64(i))), database.Queue(t)
		for life := 0; race.work(queue, random, fmt.Sprintf("w%d.%d", i, life)); life++ {
			race.reclaim(queue, fmt.Sprintf("w%d.%d", i, life))
		}
	})
	race.judge()
}

// enqueue adds jobs to random lanes, in a transaction that the function it returns commits.
func (r *laneRace) enqueue(random *rand.Rand, prefix string, lanes, n int) (commit func()) {
	tx := begin(r.T, r.database)
	jobs := make([]domain.NewJob, n)
	for i := range jobs {
		key := fmt.Sprint(prefix, random.IntN(lanes))
		jobs[i] = domain.NewJob{Args: note{}, Options: []domain.EnqueueOption{domain.OnQueue("mail"), domain.Key(key), domain.MaxAttempts(1000)}}
	}
	results, err := domain.EnqueueMany(r.Context(), tx, jobs...)
	if err != nil {
		r.Errorf("enqueue: %v", err)
	}
	return func() {
		if err := tx.Commit(r.Context()); err != nil {
			r.Errorf("enqueue: %v", err)
		}
		r.mutex.Lock()
		defer r.mutex.Unlock()
		for _, result := range results {
			r.committed[result.ID] = r.clock.Add(1)
		}
	}
}

// enqueueLate adds some of the jobs that are to come, if there are any.
func (r *laneRace) enqueueLate(random *rand.Rand) (commit func()) {
	r.mutex.Lock()
	n := min(r.toCome, 10)
	r.toCome -= n
	r.mutex.Unlock()
	if n == 0 {
		return func() {}
	}
	return r.enqueue(random, "short:", 20, n)
}

// work claims and settles until every job is completed; true says that the claimer vanished.
func (r *laneRace) work(queue *domain.Queue, random *rand.Rand, workerID string) (vanished bool) {
	request := laneRequest("mail")
	request.WorkerID, request.Batch, request.Quota = workerID, 25, 7
	commit := func() {}
	defer func() { commit() }()
	for !vanished && !r.done() && !r.Failed() {
		start := random.IntN(len(request.Buckets))
		request.Buckets = slices.Concat(request.Buckets[start:], request.Buckets[:start])
		if random.IntN(4) == 0 {
			commit()
			commit = r.enqueueLate(random)
		}
		asked := r.clock.Add(1)
		jobs, err := queue.Claim(r.Context(), request)
		if err != nil {
			r.Errorf("claim: %v", err)
		}
		claims := r.note(jobs, asked)
		r.handle(jobs)
		if vanished = r.vanishes(random); !vanished {
			r.settle(queue, random, workerID, claims)
		}
	}
	return vanished
}

func (r *laneRace) done() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return len(r.completed) == r.jobs
}

func (r *laneRace) note(jobs []domain.ClaimedJob, asked int64) []*laneClaim {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	claims := make([]*laneClaim, len(jobs))
	for i, job := range jobs {
		claims[i] = &laneClaim{job: job, asked: asked, got: r.clock.Add(1)}
		r.claims[job.PartitionKey] = append(r.claims[job.PartitionKey], claims[i])
	}
	return claims
}

// handle is the handlers' step: each looks how many jobs of its key are being processed.
func (r *laneRace) handle(jobs []domain.ClaimedJob) {
	generations := make([]int64, len(jobs))
	for i, job := range jobs {
		generations[i] = job.Generation
	}
	r.database.Exec(r.T, `INSERT INTO journal
		SELECT own.lease_generation, count(*)
		FROM holdfast.inbox AS own
		JOIN holdfast.inbox AS job ON job.status = 'processing' AND job.queue = own.queue AND job.partition_key = own.partition_key
		WHERE own.status = 'processing' AND own.lease_generation = ANY($1)
		GROUP BY own.lease_generation`, generations)
}

func (r *laneRace) vanishes(random *rand.Rand) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.kills == 0 || len(r.completed) < r.jobs/4 || random.IntN(20) > 0 {
		return false
	}
	r.kills--
	return true
}

// settle ends claims at random: most complete.
func (r *laneRace) settle(queue *domain.Queue, random *rand.Rand, workerID string, claims []*laneClaim) {
	settlements := make([]domain.Settlement, len(claims))
	for i, claim := range claims {
		settlements[i] = domain.Settlement{Claim: claim.job.Claim, Retention: claim.job.Retention}
		switch draw := random.IntN(100); {
		case draw < 10:
			settlements[i].Outcome = domain.Outcome{Verdict: domain.Retry}
		case draw < 20:
			settlements[i].Outcome = domain.Outcome{Verdict: domain.Release}
		case draw < 22:
			settlements[i].Outcome = domain.Outcome{Verdict: domain.Fail}
		}
		claim.ended = r.clock.Add(1)
	}
	var failed []domain.JobID
	for i, answer := range queue.Settle(r.Context(), workerID, settlements) {
		if answer.Err != nil {
			r.Errorf("settle: %v", answer.Err)
		}
		claims[i].endedAs = answer.Status
		if answer.Status == domain.StatusFailed {
			failed = append(failed, claims[i].job.ID)
		}
	}
	r.mutex.Lock()
	for _, claim := range claims {
		if claim.endedAs == domain.StatusCompleted {
			r.completed[claim.job.ID]++
		}
	}
	for _, id := range failed {
		r.redriven[id] = true
	}
	r.mutex.Unlock()
	if _, err := domain.Redrive(r.Context(), r.database.Pool, failed...); err != nil {
		r.Errorf("redrive: %v", err)
	}
}

// reclaim takes back what a claimer held that has vanished, as if its leases had ended.
func (r *laneRace) reclaim(queue *domain.Queue, workerID string) {
	r.mutex.Lock()
	for _, claims := range r.claims {
		for _, claim := range claims {
			if claim.job.WorkerID == workerID && claim.ended == 0 {
				claim.ended, claim.endedAs = r.clock.Add(1), domain.StatusPending
			}
		}
	}
	r.mutex.Unlock()
	r.database.Exec(r.T, "UPDATE holdfast.inbox SET lease_expires_at = now() - interval '1 second' WHERE claimed_by = $1", workerID)
	reclaimed, _, err := queue.Reclaim(r.Context(), 0)
	if err != nil {
		r.Errorf("reclaim: %v", err)
	}
	r.database.Exec(r.T, "UPDATE holdfast.inbox SET available_at = now() WHERE status = 'pending' AND available_at > now()")
	r.Logf("worker %s vanished with %d claims", workerID, len(reclaimed))
}

// judge holds what was seen against the promise.
func (r *laneRace) judge() {
	var claims, late int
	for key, lane := range r.claims {
		// Tokens only grow: within a lane they are the order of the claims.
		slices.SortFunc(lane, func(a, b *laneClaim) int { return cmp.Compare(a.job.Generation, b.job.Generation) })
		claims += len(lane)
		for i, claim := range lane[1:] {
			if before := lane[i]; before.ended == 0 || before.ended > claim.got {
				r.Errorf("%s: job %d was claimed while job %d was held", key, claim.job.Seq, before.job.Seq)
			}
		}
		late += r.judgeOrder(key, lane)
	}
	for id, times := range r.completed {
		if times != 1 {
			r.Errorf("job %s was completed %d times", id, times)
		}
	}
	if archived := pgtest.Value[int64](r.T, r.database, "SELECT count(*) FROM holdfast.inbox_archive"); archived != int64(r.jobs) || len(r.completed) != r.jobs {
		r.Errorf("%d jobs are archived and %d completed, want %d", archived, len(r.completed), r.jobs)
	}
	if alone := pgtest.Value[int64](r.T, r.database, "SELECT count(*) FROM journal WHERE processing = 1"); alone != int64(claims) {
		r.Errorf("%d of %d handlers found no other job of their key being processed", alone, claims)
	}
	if r.kills > 0 {
		r.Errorf("%d kills were left over", r.kills)
	}
	r.Logf("%d claims of %d jobs; %d came after a higher seq, because of a late commit", claims, r.jobs, late)
}

// judgeOrder holds that no job was claimed while one of a lower seq waited whose enqueue had
// been committed before the claim was asked for. Redriven jobs have no order.
func (r *laneRace) judgeOrder(key string, lane []*laneClaim) (late int) {
	var done []*laneClaim // The claims that ended the lane's jobs.
	for _, claim := range lane {
		if claim.endedAs == domain.StatusCompleted && !r.redriven[claim.job.ID] {
			done = append(done, claim)
		}
	}
	for _, claim := range lane {
		for _, other := range done {
			if r.redriven[claim.job.ID] || other.job.Seq >= claim.job.Seq || other.job.Generation < claim.job.Generation {
				continue
			}
			if r.committed[other.job.ID] < claim.asked {
				r.Errorf("%s: job %d was claimed before job %d", key, claim.job.Seq, other.job.Seq)
			}
			late++
		}
	}
	return late
}
