package bench

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-pg/holdfast"
)

const (
	queueName = "default"
	jobKind   = "bench"

	leastPayload = 64
	mostPayload  = 200_000 // The schema takes 256 KB.
)

// payload is what a job carries: when it was enqueued, and letters to make it as long as was
// asked for.
type payload struct {
	At   int64  `json:"at"` // Nanoseconds since 1970 by the clock of the machine, which the workers share.
	Fill string `json:"fill"`
}

// jobSource makes jobs: the same keys and payloads, but for the time in them, for the same
// seed. It is not for concurrent use.
type jobSource struct {
	random *rand.Rand
	fill   int
	keys   int                            // How many partition keys the jobs share; 0 gives each one of its own.
	draw   func(random *rand.Rand) uint64 // Draws the number of a key in place of that.
}

func newJobSource(seed int64, bytes int) *jobSource {
	empty, _ := json.Marshal(payload{At: time.Now().UnixNano()}) // A number and a text: it cannot fail.
	return &jobSource{random: rand.New(rand.NewPCG(uint64(seed), 0)), fill: bytes - len(empty)}
}

// batch makes so many jobs.
func (j *jobSource) batch(n int, now time.Time) []holdfast.NewJob {
	jobs := make([]holdfast.NewJob, n)
	for i := range jobs {
		body, _ := json.Marshal(payload{At: now.UnixNano(), Fill: j.letters(j.fill)}) // It cannot fail either.
		jobs[i] = holdfast.NewJob{
			Args:    holdfast.RawArgs{JobKind: jobKind, Payload: body},
			Options: []holdfast.EnqueueOption{holdfast.OnQueue(queueName), holdfast.Key(j.key())},
		}
	}
	return jobs
}

// key is as long as one that Enqueue would draw.
func (j *jobSource) key() string {
	if j.draw != nil {
		return keyOf(j.draw(j.random))
	}
	number := j.random.Uint64()
	if j.keys > 0 {
		number %= uint64(j.keys)
	}
	return keyOf(number)
}

func keyOf(number uint64) string { return fmt.Sprintf("%013x", number%(1<<52)) }

// letters do not compress, as little as the payloads of real jobs that are not worth it.
func (j *jobSource) letters(n int) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	letters := make([]byte, n)
	for i := range letters {
		letters[i] = alphabet[j.random.IntN(len(alphabet))]
	}
	return string(letters)
}
