package bench

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

func TestJobs_AreTheSameForTheSameSeedAndAsLongAsAskedFor(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, bytes := range []int{leastPayload, 128, 4096} {
		jobs := newJobSource(1, bytes).batch(3, now)
		for i, job := range jobs {
			if body, err := json.Marshal(job.Args); err != nil || len(body) != bytes {
				t.Errorf("job %d has %d bytes, want %d: %v", i, len(body), bytes, err)
			}
			if same := newJobSource(1, bytes).batch(3, now)[i].Args; !reflect.DeepEqual(same, job.Args) {
				t.Errorf("job %d differs with the same seed", i)
			}
			if other := newJobSource(2, bytes).batch(3, now)[i].Args; reflect.DeepEqual(other, job.Args) {
				t.Errorf("job %d is the same with another seed", i)
			}
		}
	}
}

func TestJobs_ShareTheKeysThatThereAre(t *testing.T) {
	t.Parallel()
	source := newJobSource(1, leastPayload)
	source.keys = 3
	seen := map[string]bool{}
	for range 100 {
		seen[source.key()] = true
	}
	if len(seen) != 3 {
		t.Errorf("%d keys, want 3", len(seen))
	}
}
