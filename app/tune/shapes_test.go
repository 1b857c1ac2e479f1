package tune_test

import (
	"time"

	"github.com/holdfast-pg/holdfast/app/tune"
)

// shapes are the three workloads that docs/tuning.md goes through. What the command prints of
// them is in cmd/holdfast/testdata.
var shapes = map[string]tune.Workload{
	"fast": {
		Rate: 2000, P50: seconds(2 * time.Millisecond), P99: seconds(10 * time.Millisecond), Payload: 512,
		Workers: 1, Cores: 4, MostSlots: tune.DefaultMostSlots, Connections: tune.DefaultConnections,
	},
	"http": {
		Rate: 100, P50: seconds(300 * time.Millisecond), P99: seconds(5 * time.Second), Payload: 1024,
		Workers: 2, Cores: 2, MostSlots: tune.DefaultMostSlots, Connections: tune.DefaultConnections,
	},
	"reports": {
		Rate: 0.05, P50: seconds(2 * time.Minute), P99: seconds(15 * time.Minute), Payload: 512, Held: 1,
		Workers: 3, Cores: 4, MostSlots: tune.DefaultMostSlots, Connections: tune.DefaultConnections,
	},
}

func seconds(d time.Duration) tune.Seconds { return tune.Seconds(d) }
