package tune_test

import (
	"errors"
	"flag"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-pg/holdfast/app/tune"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

// checkMany has rapid draw so many workloads; -rapid.checks wins.
func checkMany(t *testing.T, draws string, property func(*rapid.T)) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	if before := checks.Value.String(); before == checks.DefValue {
		_ = checks.Value.Set(draws)
		defer func() { _ = checks.Value.Set(before) }()
	}
	rapid.Check(t, property)
}

// drawWorkload draws any work that Check accepts, small and huge alike.
func drawWorkload(t *rapid.T) tune.Workload {
	magnitude := func(least, most float64, label string) float64 {
		return min(most, least*math.Pow(most/least, rapid.Float64Range(0, 1).Draw(t, label)))
	}
	p50 := magnitude(1e3, float64(24*time.Hour), "p50")
	p99 := min(p50*magnitude(1, 1e6, "p99 / p50"), float64(7*24*time.Hour))
	w := tune.Workload{
		Rate: magnitude(1e-4, 1e6, "rate"), P50: tune.Seconds(p50), P99: tune.Seconds(max(p50, p99)),
		Compute: rapid.Bool().Draw(t, "compute"), Ordered: rapid.Bool().Draw(t, "ordered"),
		Held: rapid.IntRange(0, 3).Draw(t, "held"), Payload: int(magnitude(1, 1<<30, "payload")) - 1,
		HotShare: rapid.Float64Range(0, 1).Draw(t, "hot share"),
		Workers:  int(magnitude(1, 10_000, "workers")), Cores: int(magnitude(1, 4096, "cores")),
		MostSlots: int(magnitude(1, 100_000, "most slots")), Connections: int(magnitude(1, 100_000, "connections")),
	}
	if err := w.Check(); err != nil {
		t.Fatalf("%+v: %v", w, err)
	}
	return w
}

// Not parallel, for the number of its draws is the whole binary's.
func TestRecommend_EveryWorkloadGetsAConfigurationThatAWorkerStartsWith(t *testing.T) {
	checkMany(t, "10000", func(t *rapid.T) {
		w := drawWorkload(t)
		r := tune.Recommend(w)
		if err := r.Worker.Validate(); err != nil {
			t.Fatal(err)
		}
		if r.Worker.Connections > domain.DefaultConnections || r.Worker.Concurrency > w.MostSlots || r.Pool < w.Held*r.Worker.Concurrency ||
			r.Shards < 1 || r.Queue.Ordered != w.Ordered {
			t.Fatalf("%+v", r)
		}
	})
}

// What is recommended does the work, or it is said what is missing.
func TestRecommend_WhatIsRecommendedIsInNoConflictUnlessSomethingIsMissing(t *testing.T) {
	checkMany(t, "10000", func(t *rapid.T) {
		w := drawWorkload(t)
		r := tune.Recommend(w)
		for _, conflict := range w.Conflicts(r.Values) {
			// No setting changes the payload or the rate, and a limit of slots is the person's.
			said := strings.Contains(conflict.What, "PayloadWarning") || strings.Contains(conflict.What, "measure yours") ||
				strings.Contains(conflict.What, "of the time") && (r.Worker.Concurrency == w.MostSlots || w.Compute)
			if !said && len(r.Lacks) == 0 {
				t.Fatalf("%v: %s, with %+v", conflict.Between, conflict.What, r)
			}
		}
		for _, lack := range r.Lacks {
			if lack.By <= 0 || lack.What == "" || lack.Needs == "" {
				t.Fatalf("%+v", lack)
			}
		}
	})
}

func TestRecommend_MoreOfOneThingNeverAsksForLessOfAnother(t *testing.T) {
	for name, step := range map[string]struct {
		change func(w *tune.Workload, times float64)
		less   func(before, after tune.Recommendation) bool // Something is less than before that must not be.
	}{
		"a higher rate": {
			func(w *tune.Workload, times float64) { w.Rate = min(w.Rate*times, 1e6) },
			func(before, after tune.Recommendation) bool {
				return after.Worker.Concurrency < before.Worker.Concurrency || after.Shards < before.Shards || after.Server.MaxWAL < before.Server.MaxWAL ||
					after.Pool < before.Pool || missing(after, "slots", "cores") < missing(before, "slots", "cores")
			},
		},
		"slower handlers": {
			func(w *tune.Workload, times float64) {
				w.P50, w.P99 = slower(w.P50, times), slower(w.P99, times)
			},
			func(before, after tune.Recommendation) bool {
				return after.Worker.Concurrency < before.Worker.Concurrency || after.Worker.Lease < before.Worker.Lease ||
					after.Worker.DrainDeadline < before.Worker.DrainDeadline || after.Shards < before.Shards
			},
		},
		"slower slow handlers": {
			func(w *tune.Workload, times float64) { w.P99 = slower(w.P99, times) },
			func(before, after tune.Recommendation) bool {
				return after.Worker.Concurrency < before.Worker.Concurrency || after.Worker.Lease < before.Worker.Lease || after.Worker.DrainDeadline < before.Worker.DrainDeadline
			},
		},
		"larger payloads": {
			func(w *tune.Workload, times float64) { w.Payload = int(min(float64(w.Payload)*times, 1<<30)) },
			func(before, after tune.Recommendation) bool {
				return after.Worker.ClaimBatch > before.Worker.ClaimBatch || after.Server.MaxWAL < before.Server.MaxWAL
			},
		},
		"more workers": {
			func(w *tune.Workload, times float64) { w.Workers = int(min(float64(w.Workers)*times, 10_000)) },
			func(before, after tune.Recommendation) bool {
				return after.Worker.Concurrency > before.Worker.Concurrency || after.Worker.Buckets < before.Worker.Buckets ||
					missing(after, "slots", "cores") > missing(before, "slots", "cores")
			},
		},
		"more connections": {
			func(w *tune.Workload, times float64) {
				w.Connections = int(min(float64(w.Connections)*times, 100_000))
			},
			func(before, after tune.Recommendation) bool {
				return after.Worker.Concurrency < before.Worker.Concurrency || missing(after, "connections") > missing(before, "connections")
			},
		},
		"a hotter key": {
			func(w *tune.Workload, times float64) { w.HotShare = min(w.HotShare*times, 1) },
			func(before, after tune.Recommendation) bool { return after.Shards < before.Shards },
		},
	} {
		t.Run(name, func(t *testing.T) {
			checkMany(t, "2000", func(t *rapid.T) {
				w := drawWorkload(t)
				before := tune.Recommend(w)
				changed := w
				step.change(&changed, rapid.Float64Range(1, 100).Draw(t, "times"))
				if after := tune.Recommend(changed); step.less(before, after) {
					t.Fatalf("%+v\ngets   %+v\n%+v\ngets   %+v", w, before, changed, after)
				}
			})
		})
	}
}

func slower(s tune.Seconds, times float64) tune.Seconds {
	return tune.Seconds(min(float64(s)*times, float64(7*24*time.Hour)))
}

// missing is how many of something are missing.
func missing(r tune.Recommendation, of ...string) int {
	for _, lack := range r.Lacks {
		if slices.Contains(of, lack.Of) {
			return lack.By
		}
	}
	return 0
}

// unadvised are the fields of worker.Config that no workload decides.
var unadvised = []string{"Queues", "PollOnly", "DirectURL", "Version", "Logger", "Observer", "Clock", "Random", "NewID", "Gate", "Says"}

func TestSettings_EveryFieldOfAWorkersConfigurationIsAdvisedOnOrKnownNotToBe(t *testing.T) {
	t.Parallel()
	w := shapes["fast"]
	var advised []string
	for _, setting := range tune.Advise(w, tune.Current{Values: tune.Defaults(w.Cores)}).Settings {
		if setting.Of == "worker" {
			advised = append(advised, setting.Setting)
		}
		if setting.Rule == "" || setting.Watch == "" || setting.Current == "" || setting.Recommended == "" || setting.From != tune.FromDefault {
			t.Errorf("%+v is not whole", setting)
		}
	}
	config := reflect.TypeFor[worker.Config]()
	for i := range config.NumField() {
		name := config.Field(i).Name
		if slices.Contains(advised, name) == slices.Contains(unadvised, name) {
			t.Errorf("%s is in both lists, or in none", name)
		}
	}
	if len(advised)+len(unadvised) != config.NumField() {
		t.Errorf("%v are advised on, which are not all fields", advised)
	}
}

func TestCheck_WhatDescribesNoWorkIsRefused(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(w *tune.Workload){
		"--rate: 0 is not more than 0":              func(w *tune.Workload) { w.Rate = 0 },
		"--rate: NaN is not":                        func(w *tune.Workload) { w.Rate = math.NaN() },
		"--rate: +Inf is not":                       func(w *tune.Workload) { w.Rate = math.Inf(1) },
		"--workers: 0 is not at least 1":            func(w *tune.Workload) { w.Workers = 0 },
		"--hot-key: 30 is not at least 0":           func(w *tune.Workload) { w.HotShare = 30 },
		"--payload: -1 is not":                      func(w *tune.Workload) { w.Payload = -1 },
		"--max-connections: 0 is not":               func(w *tune.Workload) { w.Connections = 0 },
		"--max-concurrency: 0 is not":               func(w *tune.Workload) { w.MostSlots = 0 },
		"--held-connections: -1 is not":             func(w *tune.Workload) { w.Held = -1 },
		"--cores: 0 is not":                         func(w *tune.Workload) { w.Cores = 0 },
		"--p50: 0s is not more than 0":              func(w *tune.Workload) { w.P50 = 0 },
		"--p99: 1ms is not at least the p50 (2ms)":  func(w *tune.Workload) { w.P99 = seconds(time.Millisecond) },
		"--p99: 200h0m0s is not at least the p50 (": func(w *tune.Workload) { w.P99 = seconds(200 * time.Hour) },
	} {
		w := shapes["fast"]
		spoil(&w)
		var invalid *domain.InvalidError
		if err := w.Check(); !errors.As(err, &invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestRecommend_WorkThatIsTooMuchIsToldWhatIsMissingAndByHowMuch(t *testing.T) {
	t.Parallel()
	for of, test := range map[string]struct {
		change func(w *tune.Workload)
		by     int
		what   string
	}{
		"slots": {
			func(w *tune.Workload) { w.P50, w.P99, w.MostSlots = seconds(time.Second), seconds(time.Second), 16 }, 4984,
			"5,000/s × 1s on average = 5,000 handlers at once, but 1 process × 16 slots = 16: 4984 slots are missing",
		},
		"cores": {
			func(w *tune.Workload) {
				w.P50, w.P99, w.Compute = seconds(4*time.Millisecond), seconds(4*time.Millisecond), true
			}, 16,
			"5,000/s × 4ms on average = 20 handlers at once, but 1 process × 4 cores = 4: 16 cores are missing",
		},
		"connections": {
			func(w *tune.Workload) { w.Workers, w.Held, w.Connections = 10, 1, 60 }, 10,
			"10 processes × (4 + 1 to listen + 1 held × 2 slots) = 70 connections, but there are 60: 10 are missing",
		},
		"buckets": {
			func(w *tune.Workload) { w.Workers, w.Connections = 2000, 100_000 }, 3616,
			"10 × 2000 processes = 20000 buckets, but an installation has 16384 at most: 3616 are missing",
		},
		"payload": {
			func(w *tune.Workload) { w.Payload = 300_000 }, 300_000 - 256<<10,
			"a payload of 300000 bytes, but 256 KB is the limit: 37856 bytes are too much",
		},
	} {
		w := shapes["fast"]
		test.change(&w)
		lacks := tune.Recommend(w).Lacks
		if len(lacks) != 1 || lacks[0].Of != of || lacks[0].By != test.by || lacks[0].What != test.what {
			t.Errorf("%s: %+v, want %d: %s", of, lacks, test.by, test.what)
		}
	}
}
