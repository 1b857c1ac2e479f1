package bench

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	nethttp "net/http"
	"sync/atomic"
	"time"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/relay"
	"github.com/holdfast-pg/holdfast/relay/http"
	"github.com/holdfast-pg/holdfast/relay/inbox"
)

// relayKeys is how many keys the messages of an ordered outbox have.
const relayKeys = 1000

// relays asks how fast an outbox is published, and how long a single message is on its way. The
// relay runs in the bench's own process, and so do the destinations, but for the other database.
var relays = scenario{
	name:  "relay",
	about: "one relay publishes a full outbox, then single messages",
	trials: func(o Options) []trial {
		messages, single := o.jobs(2_000, 50_000), bySize(o, 20, 200)
		with := func(name string, ordered bool, open func(ctx context.Context, s *stage) (relay.Publisher, func() error, error)) trial {
			return trial{
				name:  name,
				needs: needs{workers: 1, producers: 2 * preloaders, jobs: 2 * messages, payload: o.Payload},
				run: func(ctx context.Context, s *stage) ([]Figure, error) {
					publisher, closing, err := open(ctx, s)
					if err != nil {
						return nil, err
					}
					figures, err := s.relay(ctx, publisher, ordered, messages, single)
					return figures, errors.Join(err, closing())
				},
			}
		}
		return []trial{with("discarded", false, discarding), with("ordered", true, discarding), with("HTTP", false, posting), with("inbox", false, ingesting)}
	},
}

// discard takes every message at once.
type discard struct{}

func (discard) Publish(_ context.Context, batch []relay.Message) []error {
	return make([]error, len(batch))
}
func (discard) Ready(context.Context) error { return nil }
func (discard) Close() error                { return nil }

func discarding(context.Context, *stage) (relay.Publisher, func() error, error) {
	return discard{}, func() error { return nil }, nil
}

// posting publishes to a server in this process.
func posting(ctx context.Context, _ *stage) (relay.Publisher, func() error, error) {
	var config net.ListenConfig
	socket, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	server := &nethttp.Server{
		ReadHeaderTimeout: time.Minute,
		Handler:           nethttp.HandlerFunc(func(_ nethttp.ResponseWriter, r *nethttp.Request) { _, _ = io.Copy(io.Discard, r.Body) }),
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(socket) // It ends by being closed.
	}()
	return http.New(http.Config{URL: "http://" + socket.Addr().String()}), func() error {
		err := server.Close()
		<-ended
		return err
	}, nil
}

// ingesting publishes to another database of the same server.
func ingesting(ctx context.Context, s *stage) (relay.Publisher, func() error, error) {
	other, err := s.server.newStage(ctx, s.Options, s.title+": the receiver")
	if err != nil {
		return nil, nil, err
	}
	pool, err := openTraced(ctx, other.url, preloaders, &trips{})
	if err != nil {
		return nil, nil, errors.Join(err, other.close())
	}
	return inbox.New(pool, ""), other.close, nil
}

// relay publishes a full outbox, and then one message after the other.
func (s *stage) relay(ctx context.Context, publisher relay.Publisher, ordered bool, messages, single int) ([]Figure, error) {
	if err := s.setQueue(ctx, holdfast.QueueChange{Ordered: &ordered}); err != nil {
		return nil, err
	}
	if ordered {
		s.jobs.keys = relayKeys
	}
	if err := s.preload(ctx, messages); err != nil {
		return nil, err
	}
	measured := &measuredPublisher{Publisher: publisher}
	config := relay.Config{Queue: queueName}
	config.Worker.Logger = slog.New(slog.DiscardHandler)
	created, err := relay.New(s.pool, config, measured)
	if err != nil {
		return nil, errors.Join(err, publisher.Close())
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	returned := make(chan error, 1)
	began := time.Now()
	s.server.progress.begin(s.title+": publish", messages)
	go func() { returned <- created.Run(running) }()
	if err := s.untilTaken(ctx, measured, messages); err != nil {
		return nil, errors.Join(err, stopped(stop, returned))
	}
	elapsed, batches := time.Since(began), measured.batches.Load()
	measured.latencies.Store(newHistogram())
	err = s.sendSingle(ctx, measured, messages, single)
	if err := errors.Join(err, stopped(stop, returned)); err != nil {
		return nil, err
	}
	if err := s.checkArchived(ctx, messages+single); err != nil {
		return nil, err
	}
	return append([]Figure{
		{"messages", "", float64(messages)},
		{"rate", "messages/s", float64(messages) / elapsed.Seconds()},
		{"batch", "messages", float64(messages) / float64(batches)},
	}, measured.latencies.Load().figures("from enqueue")...), nil
}

func stopped(stop func(), returned <-chan error) error {
	stop()
	return <-returned
}

// sendSingle enqueues messages one by one, each when the one before it was taken.
func (s *stage) sendSingle(ctx context.Context, measured *measuredPublisher, before, single int) error {
	s.server.progress.begin(s.title+": single messages", single)
	for i := range single {
		if _, err := holdfast.EnqueueMany(ctx, s.pool, s.jobs.batch(1, time.Now())...); err != nil {
			return err
		}
		if err := s.untilTaken(ctx, measured, before+i+1); err != nil {
			return err
		}
		if err := pauseFor(ctx, leastPause); err != nil {
			return err
		}
		s.server.progress.at(i + 1)
	}
	return nil
}

// untilTaken waits until the destination has taken so many messages and they are recorded.
func (s *stage) untilTaken(ctx context.Context, measured *measuredPublisher, messages int) error {
	for last, progressed := int64(-1), time.Now(); ; {
		now := measured.taken.Load()
		if now >= int64(messages) {
			if empty, err := s.queries.IsInboxEmpty(ctx, s.pool); empty || err != nil {
				return err
			}
		}
		s.server.progress.at(min(int(now), messages))
		if now != last {
			last, progressed = now, time.Now()
		} else if time.Since(progressed) > stuckAfter {
			return errors.New("the relay is stuck")
		}
		if err := pauseFor(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

func pauseFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// measuredPublisher counts what a publisher takes, and from when a histogram is there, how long
// after its enqueue.
type measuredPublisher struct {
	relay.Publisher
	taken, batches atomic.Int64
	latencies      atomic.Pointer[histogram]
}

func (m *measuredPublisher) Publish(ctx context.Context, batch []relay.Message) []error {
	results := m.Publisher.Publish(ctx, batch)
	now := time.Now()
	m.batches.Add(1)
	for i, result := range results {
		if result != nil {
			continue
		}
		m.taken.Add(1)
		var sent payload
		if latencies := m.latencies.Load(); latencies != nil && json.Unmarshal(batch[i].Payload, &sent) == nil {
			latencies.record(now.Sub(time.Unix(0, sent.At)))
		}
	}
	return results
}
