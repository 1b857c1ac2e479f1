package integration

import (
	"sync/atomic"
	"testing"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// outcomes are one of each verdict.
var outcomes = []domain.Outcome{
	{Verdict: domain.Complete},
	{Verdict: domain.Retry, Error: "smtp 421"},
	{Verdict: domain.Fail, Error: "no such address"},
	{Verdict: domain.Release},
}

func TestFenced_StaleWorkerCannotSettle(t *testing.T) {
	t.Parallel()
	for _, outcome := range outcomes {
		for name, winner := range map[string]string{"another worker": "w2", "the same worker": "w1"} {
			t.Run(outcome.Verdict.String()+" after "+name+" won the job", func(t *testing.T) {
				t.Parallel()
				database := pgtest.New(t)
				queue := database.Queue(t)
				id := enqueue(t, database)
				stale := claimOne(t, queue, "w1")
				database.ExpireLease(t, id)
				mustReclaim(t, queue, 1)
				wantError(t, settle(t, queue, stale, outcome).Err, domain.ErrLeaseLost)
				database.EndWait(t, id)
				current := claimOne(t, queue, winner)
				wantError(t, settle(t, queue, stale, outcome).Err, domain.ErrLeaseLost)
				if job := find(t, database, id); job.Status != domain.StatusProcessing || job.Generation != current.Generation || *job.ClaimedBy != winner {
					t.Fatalf("the stale worker changed the job: %+v", job)
				}
				mustSettle(t, queue, current, domain.Outcome{}, domain.StatusCompleted)
			})
		}
	}
}

func TestFenced_EveryPartOfTheFenceCounts(t *testing.T) {
	t.Parallel()
	for _, outcome := range outcomes {
		for _, retention := range []domain.RetentionMode{domain.RetentionArchive, domain.RetentionKeep, domain.RetentionDrop} {
			t.Run(outcome.Verdict.String()+" in mode "+string(retention), func(t *testing.T) {
				t.Parallel()
				database := pgtest.New(t)
				queue := database.Queue(t)
				database.Exec(t, "UPDATE holdfast.queues SET retention_mode = $1::text::holdfast.retention_mode", string(retention))
				enqueue(t, database)
				job := claimOne(t, queue, "w1")
				for part, forge := range map[string]func(*domain.Claim){
					"generation": func(c *domain.Claim) { c.Generation++ },
					"bucket":     func(c *domain.Claim) { c.Bucket = (c.Bucket + 1) % 1024 },
					"id":         func(c *domain.Claim) { c.ID[0]++ },
					"worker":     func(c *domain.Claim) { c.WorkerID = "w2" },
				} {
					forged := job
					forge(&forged.Claim)
					if answer := settle(t, queue, forged, outcome); answer.Err == nil {
						t.Errorf("a claim with a wrong %s was settled", part)
					}
				}
				if answer := settle(t, queue, job, outcome); answer.Err != nil {
					t.Errorf("the claim itself was refused: %v", answer.Err)
				}
			})
		}
	}
}

func TestCompleteOnce_OneOfManyRacingCompletionsCounts(t *testing.T) {
	t.Parallel()
	for _, retention := range []domain.RetentionMode{domain.RetentionArchive, domain.RetentionKeep, domain.RetentionDrop} {
		t.Run(string(retention), func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			queue := database.Queue(t)
			database.Exec(t, "UPDATE holdfast.queues SET retention_mode = $1::text::holdfast.retention_mode", string(retention))
			enqueue(t, database)
			job := claimOne(t, queue, "w1")
			var completed atomic.Int64
			atOnce(8, func(int) {
				if answer := settle(t, queue, job, domain.Outcome{}); answer.Err == nil {
					completed.Add(1)
				}
			})
			if completed.Load() != 1 {
				t.Fatalf("%d of 8 completions of one claim counted", completed.Load())
			}
		})
	}
}

func TestComplete_RetentionModeDecidesWhereTheRowGoes(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	for mode, counts := range map[domain.RetentionMode][2]int64{
		domain.RetentionArchive: {0, 1},
		domain.RetentionKeep:    {1, 0},
		domain.RetentionDrop:    {0, 0},
	} {
		database.Exec(t, "DELETE FROM holdfast.inbox")
		database.Exec(t, "DELETE FROM holdfast.inbox_archive")
		database.Exec(t, "UPDATE holdfast.queues SET retention_mode = $1::text::holdfast.retention_mode", string(mode))
		id := enqueue(t, database, domain.Key("order:9182"), domain.Once("receipt:9182 "+string(mode)))
		before := find(t, database, id)
		job := claimOne(t, queue, "w1")
		mustSettle(t, queue, job, domain.Outcome{}, domain.StatusCompleted)
		inbox := pgtest.Value[int64](t, database, "SELECT count(*) FROM holdfast.inbox WHERE status = 'completed'")
		archive := pgtest.Value[int64](t, database, "SELECT count(*) FROM holdfast.inbox_archive")
		if got := [2]int64{inbox, archive}; got != counts {
			t.Fatalf("mode %s left %v rows in inbox and archive, want %v", mode, got, counts)
		}
		if mode == domain.RetentionDrop {
			continue
		}
		after := find(t, database, id)
		if after.Status != domain.StatusCompleted || *after.FinishedBy != "w1" || after.Generation != job.Generation || after.CompletedAt == nil ||
			after.Seq != before.Seq || after.PartitionKey != before.PartitionKey || *after.IdempotencyKey != *before.IdempotencyKey ||
			string(after.Payload) != string(before.Payload) || !after.CreatedAt.Equal(before.CreatedAt) || after.Attempts != 1 {
			t.Fatalf("mode %s: the finished job is %+v, it was %+v", mode, after, before)
		}
	}
}

func TestComplete_AnEndedLeaseThatNobodyReclaimedStillCompletes(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	id := enqueue(t, database)
	job := claimOne(t, queue, "w1")
	database.ExpireLease(t, id)
	mustSettle(t, queue, job, domain.Outcome{}, domain.StatusCompleted)
}

// A reply can be lost after the commit: the worker sends the settlement again and must not
// be told that it lost the lease.
func TestCompleteOnce_RepeatedSettlementAfterALostReplyIsDone(t *testing.T) {
	t.Parallel()
	for _, outcome := range outcomes {
		for _, retention := range []domain.RetentionMode{domain.RetentionArchive, domain.RetentionKeep, domain.RetentionDrop} {
			t.Run(outcome.Verdict.String()+" in mode "+string(retention), func(t *testing.T) {
				t.Parallel()
				database := pgtest.New(t)
				queue := database.Queue(t)
				database.Exec(t, "UPDATE holdfast.queues SET retention_mode = $1::text::holdfast.retention_mode", string(retention))
				enqueue(t, database)
				job := claimOne(t, queue, "w1")
				first := settle(t, queue, job, outcome)
				if first.Err != nil {
					t.Fatal(first.Err)
				}
				again := domain.Settlement{Claim: job.Claim, Retention: job.Retention, Outcome: outcome, Unconfirmed: true}
				if answer := queue.Settle(t.Context(), "w1", []domain.Settlement{again})[0]; answer.Err != nil {
					t.Fatalf("the repeated settlement was told %v", answer.Err)
				}
			})
		}
	}
}

func TestFenced_UnconfirmedSettlementOfALostClaimIsRefused(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	id := enqueue(t, database)
	stale := claimOne(t, queue, "w1")
	database.ExpireLease(t, id)
	mustReclaim(t, queue, 1)
	settlement := domain.Settlement{Claim: stale.Claim, Retention: stale.Retention, Unconfirmed: true}
	wantError(t, queue.Settle(t.Context(), "w1", []domain.Settlement{settlement})[0].Err, domain.ErrLeaseLost)
	database.EndWait(t, id)
	mustSettle(t, queue, claimOne(t, queue, "w2"), domain.Outcome{}, domain.StatusCompleted)
	wantError(t, queue.Settle(t.Context(), "w1", []domain.Settlement{settlement})[0].Err, domain.ErrLeaseLost)
}

func TestComplete_MixedOutcomesOfOneFlushAllTakeEffect(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	enqueueNotes(t, database, 40)
	jobs := claim(t, queue, "w1", 40)
	settlements := make([]domain.Settlement, len(jobs))
	for i, job := range jobs {
		settlements[i] = domain.Settlement{Claim: job.Claim, Retention: job.Retention, Outcome: outcomes[i%len(outcomes)]}
	}
	want := []domain.Status{domain.StatusCompleted, domain.StatusPending, domain.StatusFailed, domain.StatusPending}
	for i, answer := range queue.Settle(t.Context(), "w1", settlements) {
		if answer.Err != nil || answer.Status != want[i%len(want)] {
			t.Errorf("settlement %d answered %+v, want %s", i, answer, want[i%len(want)])
		}
		wantStatus(t, database, jobs[i].ID, want[i%len(want)])
	}
}

// A worker that lost a job and won it again can hold both results at once, and both claims
// when it renews: each is told of its own claim.
func TestFenced_TwoClaimsOfOneJobInOneSetAreToldApart(t *testing.T) {
	t.Parallel()
	for _, outcome := range outcomes {
		t.Run(outcome.Verdict.String(), func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			queue := database.Queue(t)
			id := enqueue(t, database)
			stale := claimOne(t, queue, "w1")
			database.ExpireLease(t, id)
			mustReclaim(t, queue, 1)
			database.EndWait(t, id)
			current := claimOne(t, queue, "w1")
			held, err := queue.Renew(t.Context(), "w1", lease, []domain.Claim{stale.Claim, current.Claim})
			if err != nil || len(held) != 1 || held[0] != current.Claim {
				t.Fatalf("renewed %v (error %v), want the current claim alone", held, err)
			}
			var set []domain.Settlement
			for _, job := range []domain.ClaimedJob{stale, current} {
				set = append(set, domain.Settlement{Claim: job.Claim, Retention: job.Retention, Outcome: outcome})
			}
			answers := queue.Settle(t.Context(), "w1", set)
			wantError(t, answers[0].Err, domain.ErrLeaseLost)
			if answers[1].Err != nil {
				t.Fatalf("the current claim was told %v", answers[1].Err)
			}
		})
	}
}
