package relay

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
	"github.com/holdfast-pg/holdfast/worker"
)

// broker is a publisher that takes what the test lets it take.
type broker struct {
	mutex   sync.Mutex
	taken   []Message
	batches []int
	asked   int // How often Ready was called.
	down    error
	unready error
	takes   time.Duration // A batch takes so long.
	refuse  func(Message) error
	closed  bool
}

func (b *broker) Publish(ctx context.Context, batch []Message) []error {
	select {
	case <-time.After(b.takes):
	case <-ctx.Done():
		return All(batch, NotNow(0, ctx.Err()))
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.batches = append(b.batches, len(batch))
	if b.down != nil {
		return All(batch, b.down)
	}
	results := make([]error, len(batch))
	for i, message := range batch {
		if b.refuse != nil {
			results[i] = b.refuse(message)
		}
		if results[i] == nil {
			b.taken = append(b.taken, message)
		}
	}
	return results
}

func (b *broker) Ready(context.Context) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.asked++
	return b.unready
}

func (b *broker) Close() error {
	b.closed = true
	return nil
}

// set changes the broker while the relay uses it.
func (b *broker) set(change func()) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	change()
}

// office is a relay on an installation in memory.
type office struct {
	*model.Queue
	t      *testing.T
	relay  *Relay
	config Config
	broker *broker
	stop   context.CancelFunc
}

// newOffice returns one for use within synctest.Test, whose outbox is ordered.
func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{
		Queue:  model.New(model.Settings{BucketCount: 32, Backoff: func(int) time.Duration { return 2 * time.Second }}),
		t:      t,
		broker: &broker{},
	}
	ordered := true
	if _, err := o.SetQueue(t.Context(), "outbox", domain.QueueChange{Ordered: &ordered}); err != nil {
		t.Fatal(err)
	}
	o.config = Config{Queue: "outbox", Destination: "test", Worker: worker.Config{PollOnly: true, Logger: slog.New(slog.DiscardHandler)}}
	return o
}

// start runs the relay until the test ends, which fails if it then holds a job.
func (o *office) start() {
	o.t.Helper()
	o.relay = newRelay(o.config, o.broker)
	created, err := worker.New(o.Queue, o.relay.workerConfig(), worker.HandleRest(o.relay.handle))
	if err != nil {
		o.t.Fatal(err)
	}
	o.relay.worker = created
	ctx, stop := context.WithCancel(o.t.Context())
	o.stop = stop
	returned := make(chan error, 1)
	go func() { returned <- o.relay.Run(ctx) }()
	o.t.Cleanup(func() {
		stop()
		if err := <-returned; err != nil {
			o.t.Errorf("the relay returned %v", err)
		}
		if held := o.count(domain.StatusProcessing); held > 0 {
			o.t.Errorf("%d jobs are still held", held)
		}
		if !o.broker.closed {
			o.t.Error("the publisher was not closed")
		}
	})
}

func (o *office) enqueue(key string, n int) {
	o.t.Helper()
	job := model.NewJob{Queue: "outbox", Kind: "placed", Key: key, Payload: json.RawMessage(strconv.Itoa(n)), Headers: json.RawMessage(`{"tenant":"a"}`)}
	if _, err := o.Enqueue(o.t.Context(), job); err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) count(status domain.Status) int {
	return len(slices.DeleteFunc(o.Jobs(), func(job domain.JobRecord) bool { return job.Status != status }))
}

// attempts is the most attempts that any job has spent.
func (o *office) attempts() (most int) {
	for _, job := range o.Jobs() {
		most = max(most, job.Attempts)
	}
	return most
}

// payloads are those of a key that were taken, in order.
func (b *broker) payloads(key string) string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	var payloads []string
	for _, message := range b.taken {
		if message.Key == key {
			payloads = append(payloads, string(message.Payload))
		}
	}
	return strings.Join(payloads, " ")
}

// pass lets the time of the bubble pass.
func pass(d time.Duration) { <-time.After(d) }

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestRelay_PublishesInTheOrderOfEachKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.broker.takes = 10 * time.Millisecond
		for n := range 10 {
			for _, key := range []string{"a", "b", "c"} {
				o.enqueue(key, n)
			}
		}
		o.start()
		pass(time.Minute)
		equal(t, "jobs completed", o.count(domain.StatusCompleted), 30)
		for _, key := range []string{"a", "b", "c"} {
			equal(t, "order of "+key, o.broker.payloads(key), "0 1 2 3 4 5 6 7 8 9")
		}
		first := o.broker.taken[0]
		if first.Source != "/holdfast/outbox" || first.Kind != "placed" || first.Queue != "outbox" || first.Seq == 0 || first.Headers["tenant"] != "a" {
			t.Errorf("a message is %+v", first)
		}
		if largest := slices.Max(o.broker.batches); largest < 2 {
			t.Errorf("no batch has more than one key")
		}
		equal(t, "published", o.relay.Status().Published, 30)
	})
}

func TestRelay_DestinationThatIsAwayStopsClaimsAndCostsNoAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		down := errors.New("connection refused")
		o.broker.down, o.broker.unready = NotNow(0, down), down
		for n := range 3 {
			o.enqueue("a", n)
			o.enqueue("b", n)
		}
		o.start()
		pass(10 * time.Minute)
		equal(t, "batches while it is away", len(o.broker.batches), 1)
		equal(t, "jobs held", o.count(domain.StatusProcessing), 0)
		equal(t, "attempts spent", o.attempts(), 0)
		now := o.relay.Status()
		if !now.Away || now.LastError != "connection refused" || now.PutOff == 0 {
			t.Errorf("the status is %+v", now)
		}
		// At first often, then every 15 s at least.
		if o.broker.asked < 10*60/15 || o.broker.asked > 100 {
			t.Errorf("in ten minutes it was asked %d times whether it is back", o.broker.asked)
		}

		o.broker.set(func() { o.broker.down, o.broker.unready = nil, nil })
		pass(longestRest + 10*time.Second)
		equal(t, "jobs completed", o.count(domain.StatusCompleted), 6)
		equal(t, "order", o.broker.payloads("a")+"|"+o.broker.payloads("b"), "0 1 2|0 1 2")
		equal(t, "away", o.relay.Status().Away, false)
	})
}

// What only a message can tell, as with HTTP: Ready knows nothing.
func TestRelay_RestsLongerEachTimeThatNothingIsTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.broker.down = NotNow(0, errors.New("503 Service Unavailable"))
		o.enqueue("a", 1)
		o.start()
		pass(10 * time.Minute)
		if tries := len(o.broker.batches); tries < 40 || tries > 100 {
			t.Errorf("tried %d times in ten minutes, want one in 15 s at the end", tries)
		}
		equal(t, "attempts spent", o.attempts(), 0)
	})
}

func TestRelay_DestinationIsLeftAloneAsLongAsItAsksFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.broker.down = NotNow(2*time.Minute, errors.New("429 Too Many Requests"))
		o.enqueue("a", 1)
		o.start()
		pass(119 * time.Second)
		equal(t, "batches", len(o.broker.batches), 1)
		o.broker.set(func() { o.broker.down = nil })
		pass(10 * time.Second)
		equal(t, "jobs completed", o.count(domain.StatusCompleted), 1)
	})
}

func TestRelay_RefusedMessageBlocksOnlyItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.broker.refuse = func(message Message) error {
			if string(message.Payload) == "0" && message.Key == "a" {
				return TooLarge(300, 200)
			}
			return nil
		}
		for n := range 3 {
			o.enqueue("a", n)
			o.enqueue("b", n)
		}
		o.start()
		pass(time.Minute)
		equal(t, "jobs completed", o.count(domain.StatusCompleted), 5)
		equal(t, "jobs failed", o.count(domain.StatusFailed), 1)
		equal(t, "order", o.broker.payloads("a")+"|"+o.broker.payloads("b"), "1 2|0 1 2")
		for _, job := range o.Jobs() {
			if job.Status == domain.StatusFailed {
				equal(t, "last error", *job.LastError, "refused: the message has 300 bytes and the destination takes 200")
			}
		}
	})
}

func TestRelay_AnyOtherErrorSpendsAnAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.broker.refuse = func(Message) error { return errors.New("500 Internal Server Error") }
		o.enqueue("a", 1)
		o.start()
		pass(time.Hour)
		equal(t, "dead jobs", o.count(domain.StatusDeadLetter), 1)
		equal(t, "attempts spent", o.attempts(), 5)
	})
}

func TestRelay_BatchWithoutAnswerIsPutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.broker.takes, o.broker.unready = time.Hour, errors.New("away")
		o.enqueue("a", 1)
		o.start()
		pass(11 * time.Second)
		equal(t, "away", o.relay.Status().Away, true)
		equal(t, "attempts spent", o.attempts(), 0)
	})
}

func TestRelay_StopsWhileTheDestinationIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.broker.down, o.broker.unready = NotNow(0, errors.New("away")), errors.New("away")
		o.enqueue("a", 1)
		o.start()
		pass(time.Second)
		began := time.Now()
		o.stop()
		synctest.Wait()
		equal(t, "the stop took", time.Since(began), 0)
	})
}

func TestRelay_PublisherThatPanicsOrMiscountsIsAnErrorAsAnyOther(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]func(Message) error{
		"panics": func(Message) error { panic("boom") },
	} {
		synctest.Test(t, func(t *testing.T) {
			o := newOffice(t)
			o.broker.refuse = refuse
			o.enqueue("a", 1)
			o.start()
			pass(time.Second)
			if now := o.relay.Status(); now.Failed != 1 || !strings.Contains(now.LastError, "boom") {
				t.Errorf("%s: the status is %+v", name, now)
			}
		})
	}
}

func TestConfig_TimeoutWithinTheLease(t *testing.T) {
	t.Parallel()
	err := Config{Worker: worker.Config{Lease: 20 * time.Second}}.Validate()
	if err == nil || !strings.Contains(err.Error(), "10s") || !strings.Contains(err.Error(), "20s") {
		t.Errorf("says %v, want both values", err)
	}
	if err := (Config{}).Validate(); err != nil {
		t.Errorf("the default is refused: %v", err)
	}
}

func TestStatus_IsReadFromTheRegistry(t *testing.T) {
	t.Parallel()
	encoded, err := json.Marshal(said{Relay: Status{Destination: "d", Published: 3}})
	if err != nil {
		t.Fatal(err)
	}
	if got, isRelay := ReadStatus(encoded); !isRelay || got.Published != 3 || got.Destination != "d" {
		t.Errorf("read %+v, %t", got, isRelay)
	}
	for _, other := range []string{"", "null", "7", "{}", `{"relay": 3}`} {
		if _, isRelay := ReadStatus(json.RawMessage(other)); isRelay {
			t.Errorf("%q is taken for a relay", other)
		}
	}
}
