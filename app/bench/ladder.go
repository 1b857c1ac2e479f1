package bench

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/plans"
)

const (
	ladderBatch = 25 // The first claim of a worker.
	ladderQuota = 7  // What such a claim takes from a bucket, at most.
	ladderReady = 5  // Jobs of a bucket that are there to be claimed, when nothing else is.
	ladderLease = time.Hour
)

// ladder asks whether a claim costs more when more waits, and when a worker owns more. The
// statement is explained while it runs, so that the server tells its own time; nothing else
// runs meanwhile, and the tables are not analysed by hand.
var ladder = scenario{
	name:  "ladder",
	about: "the server's time for a claim of 25, against more and more jobs and buckets",
	trials: func(o Options) []trial {
		var trials []trial
		var few, owned baseline // The others are compared with them.
		for _, r := range rungs(o) {
			trials = append(trials, trial{
				name: r.name,
				// A job is written once: less than the room of one that is worked off.
				needs: needs{producers: fillers, jobs: (r.more.jobs + r.ready.jobs) / 2, payload: o.Payload},
				run: func(ctx context.Context, s *stage) ([]Figure, error) {
					figures, err := s.climb(ctx, r)
					if err != nil {
						return nil, err
					}
					for name, base := range map[string]*baseline{"0 more": &few, "8 owned": &owned} {
						if r.name == name {
							base.keep(figures)
						}
					}
					base, to := &few, "to 0 more"
					if r.owned {
						base, to = &owned, "to 8 owned"
					}
					figures = append(figures, base.ratio(figures, "claim p50", "claim p50 "+to)...)
					return append(figures, base.ratio(figures, "buffers p50", "buffers p50 "+to)...), nil
				},
			})
		}
		return trials
	},
}

// rung is what one trial claims from.
type rung struct {
	name    string
	claims  int
	buckets int     // Those that the claims probe.
	owned   bool    // It is about their number.
	ready   filling // What is there to be claimed.
	more    filling // What is there besides.
}

func rungs(o Options) []rung {
	with := func(name string, more filling) rung {
		more.buckets = bucketCount
		ready := filling{jobs: ladderReady * bucketCount, buckets: bucketCount}
		return rung{name: name, claims: bySize(o, 40, 200), buckets: bucketCount, ready: ready, more: more}
	}
	count := func(n int) string { return commas(strconv.Itoa(n)) }

	nothing := with("nothing due", filling{})
	nothing.ready.jobs = 0
	list := []rung{nothing}
	for _, jobs := range bySize(o, []int{0, 1_000, 10_000}, []int{0, 10_000, 100_000, 1_000_000, 10_000_000}) {
		list = append(list, with(count(jobs)+" more", filling{jobs: jobs}))
	}
	aside := bySize(o, 10_000, 1_000_000)
	delayed := with(count(aside)+" delayed", filling{jobs: aside, delay: time.Hour.Seconds()})
	// As many in a bucket as without the others, so that both claims probe as many buckets.
	delayed.ready = filling{jobs: 1_000, buckets: 1_000 / ladderReady}
	delayed.claims = delayed.ready.jobs / ladderBatch
	list = append(list, delayed, with(count(aside)+" kept", filling{jobs: aside, completed: true}))
	for _, buckets := range []int{1, 8, 128, bucketCount} {
		r := with(count(buckets)+" owned", filling{jobs: bySize(o, 10_000, 100_000)})
		r.buckets, r.ready.buckets, r.more.buckets, r.owned = buckets, buckets, buckets, true
		list = append(list, r)
	}
	return list
}

// start is the bucket at which a claim begins, after so many jobs: the first that has not given
// all that a claim takes from it. A worker turns around its buckets so, too.
func (r rung) start(claimed int) int {
	due := r.ready.jobs
	if r.more.delay == 0 && !r.more.completed {
		due += r.more.jobs
	}
	each := min(ladderQuota, max(1, due/r.ready.buckets))
	return claimed / each % r.buckets
}

// climb fills the queue and claims. What is claimed stays so.
func (s *stage) climb(ctx context.Context, r rung) ([]Figure, error) {
	var mode holdfast.QueueChange // None, but the queue exists then.
	if r.more.completed {
		keep := holdfast.RetentionKeep
		mode.RetentionMode = &keep
	}
	if err := s.setQueue(ctx, mode); err != nil {
		return nil, err
	}
	for _, filling := range []filling{r.more, r.ready} {
		if err := s.fill(ctx, filling); err != nil {
			return nil, err
		}
	}
	s.server.progress.begin(s.title+": claim", r.claims)
	var taken []plans.Measurement
	for claimed := 0; len(taken) < r.claims; {
		measured, err := s.explainClaim(ctx, r, r.start(claimed))
		if err != nil {
			return nil, err
		}
		claimed += int(measured.Rows)
		taken = append(taken, measured)
		s.server.progress.at(len(taken))
	}
	return claimFigures(taken), nil
}

// explainClaim claims as a worker that owns the buckets would, from one of them on.
func (s *stage) explainClaim(ctx context.Context, r rung, first int) (measured plans.Measurement, err error) {
	request := domain.ClaimRequest{
		WorkerID: "bench", Queue: queueName, Buckets: make([]int, r.buckets),
		Quota: ladderQuota, Batch: ladderBatch, Lease: ladderLease,
	}
	for i := range request.Buckets {
		request.Buckets[i] = (first + i) % r.buckets
	}
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		measured, err = plans.Measure(ctx, tx, plans.ClaimJobs(request), ladderBatch)
		return err
	})
	return measured, err
}

func claimFigures(taken []plans.Measurement) []Figure {
	column := func(of func(m plans.Measurement) float64) (sorted []float64) {
		for _, m := range taken {
			sorted = append(sorted, of(m))
		}
		slices.Sort(sorted)
		return sorted
	}
	// The plan is kept. What counts as planning is that EXPLAIN reads the arguments from text, which
	// a worker sends in binary.
	times := column(func(m plans.Measurement) float64 { return m.Execution.Seconds() * 1000 })
	buffers := column(func(m plans.Measurement) float64 { return float64(m.Buffers) })
	rows := column(func(m plans.Measurement) float64 { return float64(m.Rows) })
	return []Figure{
		{"claims", "", float64(len(taken))},
		{"least jobs of a claim", "", rows[0]},
		{"most jobs of a claim", "", rows[len(rows)-1]},
		{"claim p50", "ms", percentile(times, 50)},
		{"claim p99", "ms", percentile(times, 99)},
		{"buffers p50", "", percentile(buffers, 50)},
		{"buffers p99", "", percentile(buffers, 99)},
	}
}

// percentile is the smallest of the ascending values that so many percent are not above.
func percentile(sorted []float64, percent int) float64 {
	return sorted[(percent*len(sorted)+99)/100-1]
}
