package tune_test

import (
	"time"

	"github.com/holdfast-pg/holdfast/app/tune"
)

// shapes are the three workloads that docs/tuning.md goes through, by name. What the command
// prints of them is in cmd/holdfast/testdata.
var shapes = func() map[string]tune.Workload {
	byName := map[string]tune.Workload{}
	for _, shape := range tune.Shapes() {
		byName[shape.Name] = shape.Workload
	}
	return byName
}()

func seconds(d time.Duration) tune.Seconds { return tune.Seconds(d) }
