package integration

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

// historyRounds multiplies rapid's 100 histories. Each round has a database of its own.
const historyRounds = 2

// The model is the specification. Whatever workers, producers and operators do, one after the
// other, Postgres and the model give the same answers and are in the same state after each
// step. What they do is also what the late, the confused and the dead do: claims that are over
// are renewed and settled as often as those that hold.
func TestHistories_PostgresAnswersAsTheModelDoes(t *testing.T) {
	setDefault(t, "rapid.steps", "50")
	t.Parallel()
	var played, steps atomic.Int64
	rounds := historyRounds * historiesFactor(t)
	t.Cleanup(func() {
		t.Logf("%d histories were played, of %d steps", played.Load(), steps.Load())
		if meant := int64(100 * rounds); played.Load() < meant && !t.Failed() {
			t.Errorf("%d histories were meant to be played", meant)
		}
	})
	for round := range rounds {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			t.Parallel()
			stage := newStage(t)
			rapid.Check(t, func(t *rapid.T) {
				steps.Add(stage.play(t))
				played.Add(1)
			})
		})
	}
}

// setDefault sets a flag that was not given. Before any parallel test runs: they read it.
func setDefault(t *testing.T, name, value string) {
	t.Helper()
	if given := flag.Lookup(name); given.Value.String() == given.DefValue {
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
}

// historiesFactor is HOLDFAST_HISTORIES, as domain/model/history_test.go documents it.
func historiesFactor(t *testing.T) int {
	t.Helper()
	text := os.Getenv("HOLDFAST_HISTORIES")
	if text == "" {
		return 1
	}
	factor, err := strconv.Atoi(text)
	if err != nil || factor < 1 {
		t.Fatalf("HOLDFAST_HISTORIES is %q: a whole number from 1 on multiplies the histories", text)
	}
	return factor
}

// history is what happens on the stage between two curtains: every step on Postgres first and
// then on the model, which takes from it what is random.
type history struct {
	*stage
	model *model.Queue
	clock *model.Clock

	began   time.Time     // By the process, for how long the history took.
	opened  time.Time     // By the database's clock: the model's noon.
	shifted time.Duration // By how much rows were moved back.
	seq     int64         // Where the numbers of the database's jobs begin.

	script []string
	queues []string // Their names are of this history: a domain.Queue remembers them.
	ids    []domain.JobID
	names  map[domain.JobID]string
	claims []twoClaims     // Every one that was ever made; most are over.
	tokens map[int64]int64 // The model's for each of the database's.
	last   int64           // The database's highest token.
}

// twoClaims is one claim, as Postgres and as the model gave it.
type twoClaims struct {
	theirs, ours domain.ClaimedJob
}

var historyNoon = time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)

// historyBuckets are few, so that jobs meet.
const historyBuckets = 3

// play plays one history and returns how many steps it had.
func (s *stage) play(t *rapid.T) int64 {
	s.histories++
	clock := model.NewClock(historyNoon)
	h := &history{
		stage: s, clock: clock, model: model.New(model.Settings{BucketCount: historyBuckets, Now: clock.Now, Backoff: historyBackoff}),
		began: time.Now(), names: map[domain.JobID]string{}, tokens: map[int64]int64{0: 0},
		queues: []string{fmt.Sprintf("mail.%d", s.histories), fmt.Sprintf("bulk.%d", s.histories)},
	}
	h.opened, h.seq = s.clear(t)
	// rapid draws the first of them, by name, twice as often as others: claims.
	t.Repeat(map[string]func(*rapid.T){
		"":              h.agree,
		"enqueue":       h.enqueue,
		"enqueue more":  h.enqueue,
		"claim":         h.claim,
		"claim more":    h.claim,
		"claim most":    h.claim,
		"renew":         h.renew,
		"settle":        h.settle,
		"settle more":   h.settle,
		"settle most":   h.settle,
		"handle":        h.handle,
		"reclaim":       h.reclaim,
		"keep house":    either(h.reclaim, h.keepHouse),
		"redrive":       h.redrive,
		"operate":       either(h.cancel, h.release, h.purge, h.evict),
		"set queue":     either(h.setQueue, h.pause),
		"registry":      either(h.join, h.beat, h.beat, h.drain, h.leave, h.bell),
		"effects":       either(h.mark, h.guard),
		"look":          h.look,
		"time":          h.timePasses,
		"time and time": h.timePasses,
	})
	return int64(len(h.script))
}

// either plays one of several steps.
func either(steps ...func(*rapid.T)) func(*rapid.T) {
	which := rapid.IntRange(0, len(steps)-1)
	return func(t *rapid.T) { steps[which.Draw(t, "which")](t) }
}

// say adds a sentence to the script and lets the model's clock tick: each step is later than
// the one before, on both sides.
func (h *history) say(format string, args ...any) {
	sentence := fmt.Sprintf(format, args...)
	for _, queue := range h.queues {
		sentence = strings.ReplaceAll(sentence, queue, strings.Split(queue, ".")[0])
	}
	h.script = append(h.script, sentence)
}

// tick is how far apart two steps are by the model's clock.
const tick = time.Millisecond

// historyPatience is how long a history may take. All durations in it are half minutes: what is due
// or has ended does not depend on how fast the machine is, as long as it is not this slow.
const historyPatience = 20 * time.Second

// begin begins a step.
func (h *history) begin(t *rapid.T) {
	h.clock.Advance(tick)
	if time.Since(h.began) > historyPatience {
		t.Skip("the machine is too slow for this history")
	}
}

// same fails with the script if Postgres and the model differ in something.
func same[T any](t *rapid.T, h *history, what string, theirs, ours T) {
	t.Helper()
	if diff := cmp.Diff(ours, theirs); diff != "" {
		t.Fatalf("%s: Postgres differs from the model (-model +postgres)\n%s\nThe script, with the answers of Postgres:\n%s", what, diff, h.text())
	}
}

func (h *history) text() string {
	var text strings.Builder
	for i, sentence := range h.script {
		fmt.Fprintf(&text, "%4d. %s\n", i+1, sentence)
	}
	return text.String()
}

// sameTime returns ours if the database's time is the same, and else what that is by the
// model's clock. Between two events of a history the two clocks differ by what it took.
func (h *history) sameTime(theirs, ours time.Time) time.Time {
	at := historyNoon.Add(theirs.Add(h.shifted).Sub(h.opened))
	if at.Sub(ours).Abs() <= h.tolerance() {
		return ours
	}
	return at.UTC()
}

func (h *history) tolerance() time.Duration {
	return time.Since(h.began) + time.Second
}

func (h *history) sameDuration(theirs, ours time.Duration) time.Duration {
	if (theirs - ours).Abs() <= h.tolerance() {
		return ours
	}
	return theirs
}

func (h *history) sameTimes(theirs **time.Time, ours *time.Time) {
	if *theirs != nil && ours != nil {
		*theirs = new(h.sameTime(**theirs, *ours))
	}
}

// nameOf names a job by its key and its number.
func (h *history) nameOf(id domain.JobID) string {
	if name, known := h.names[id]; known {
		return name
	}
	return id.String()
}

func (h *history) namesOf(ids []domain.JobID) string {
	if len(ids) == 0 {
		return "nothing"
	}
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = h.nameOf(id)
	}
	return strings.Join(names, " ")
}
