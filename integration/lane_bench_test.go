package integration

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// A claim of 25 while one key has 50,000 jobs waiting and 500 others have some: run it with
//
//	go test -run '^$' -bench ClaimLanes -benchtime 200x ./integration
func BenchmarkClaimLanes_HotKey(b *testing.B) {
	database, queue := newOrdered(b)
	fillLanes(b, database, "hot:", 1, 50000)
	fillLanes(b, database, "cold:", 500, 50)
	request := laneRequest("mail")
	request.Batch, request.Quota = 25, 7
	var took []time.Duration
	var jobs, turn int
	for b.Loop() {
		turn += 97
		start := turn % len(request.Buckets)
		rotated := request
		rotated.Buckets = slices.Concat(request.Buckets[start:], request.Buckets[:start])
		sent := time.Now()
		claimed := claimLanes(b, queue, rotated)
		took = append(took, time.Since(sent))
		jobs += len(claimed)
		b.StopTimer()
		settleAll(b, queue, claimed)
		b.StartTimer()
	}
	reportClaims(b, took, jobs)
}

// One key alone: its jobs run one at a time, each claimed and completed before the next.
func BenchmarkClaimLanes_OneKey(b *testing.B) {
	database, queue := newOrdered(b)
	fillLanes(b, database, "hot:", 1, 50000)
	request := laneRequest("mail")
	request.Buckets = []int{domain.BucketOf("hot:1", 1024)}
	var took []time.Duration
	var jobs int
	for b.Loop() {
		sent := time.Now()
		claimed := claimLanes(b, queue, request)
		took = append(took, time.Since(sent))
		jobs += len(claimed)
		settleAll(b, queue, claimed)
	}
	reportClaims(b, took, jobs)
	b.ReportMetric(float64(jobs)/b.Elapsed().Seconds(), "jobs/s")
}

func settleAll(b *testing.B, queue *domain.Queue, jobs []domain.ClaimedJob) {
	b.Helper()
	settlements := make([]domain.Settlement, len(jobs))
	for i, job := range jobs {
		settlements[i] = domain.Settlement{Claim: job.Claim, Retention: job.Retention}
	}
	for _, answer := range queue.Settle(b.Context(), "w1", settlements) {
		if answer.Err != nil {
			b.Fatal(answer.Err)
		}
	}
}

func reportClaims(b *testing.B, took []time.Duration, jobs int) {
	b.Helper()
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds()*1000, "p50-ms")
	b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "p99-ms")
	b.ReportMetric(float64(jobs)/float64(len(took)), "jobs/claim")
}
