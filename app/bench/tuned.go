package bench

import (
	"context"
	"math"
	"time"

	"github.com/holdfast-pg/holdfast/app/tune"
)

// tuned asks whether the settings that holdfast tune recommends are worth having: each of its
// shapes is worked off with the defaults and with them. Handlers take less time than the shape
// says, all by the same factor, so that a run takes seconds; the settings are those of the
// shape as it is.
var tuned = scenario{
	name:  "tuned",
	about: "three workloads, each with the default settings and with those that holdfast tune recommends",
	trials: func(o Options) []trial {
		var trials []trial
		for _, shape := range tune.Shapes() {
			scale := scales[shape.Name]
			jobs := o.jobs(scale.small, scale.full)
			for _, with := range []struct {
				name     string
				workload *tune.Workload
			}{{"defaults", nil}, {"tuned", &shape.Workload}} {
				settings := workerSettings{Tuned: with.workload, Times: newTimes(shape.Workload, scale.faster)}
				trials = append(trials, trial{
					name:  shape.Name + ", " + with.name,
					needs: needs{workers: shape.Workload.Workers, producers: preloaders, jobs: jobs, payload: o.Payload},
					run: func(ctx context.Context, s *stage) ([]Figure, error) {
						return s.workOffShape(ctx, settings, shape.Workload.Workers, jobs)
					},
				})
			}
		}
		return trials
	},
}

// scales say how many times faster than a shape's its handlers are, and how many jobs keep them
// busy for some seconds.
var scales = map[string]struct {
	faster      float64
	small, full int
}{
	"fast":    {1, 2_000, 30_000},
	"http":    {10, 300, 5_000},
	"reports": {400, 48, 600},
}

func (s *stage) workOffShape(ctx context.Context, settings workerSettings, processes, jobs int) ([]Figure, error) {
	if err := s.preload(ctx, jobs); err != nil {
		return nil, err
	}
	figures, err := s.workOff(ctx, settings, processes, jobs)
	if err == nil {
		err = s.checkArchived(ctx, jobs)
	}
	return figures, err
}

// times are how long handlers sleep: log-normal, with the median and the 99th percentile that a
// workload has.
type times struct {
	Median time.Duration `json:"median"`
	Sigma  float64       `json:"sigma"`
}

func newTimes(w tune.Workload, faster float64) *times {
	const z99 = 2.326
	return &times{
		Median: time.Duration(float64(w.P50) / faster),
		Sigma:  math.Log(float64(w.P99)/float64(w.P50)) / z99,
	}
}

// nth is the time of one of them. It is not drawn: multiples of the golden ratio fill the
// quantiles evenly, so that two runs have the same work, and none waits for the slowest of few.
func (t times) nth(n int64) time.Duration {
	_, quantile := math.Modf(float64(n) * math.Phi)
	quantile = min(max(quantile, 0.005), 0.995)
	return time.Duration(float64(t.Median) * math.Exp(t.Sigma*math.Sqrt2*math.Erfinv(2*quantile-1)))
}
