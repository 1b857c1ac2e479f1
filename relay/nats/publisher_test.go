package nats

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-pg/holdfast/relay"
)

// patience bounds what a test waits for.
const patience = 30 * time.Second

// start runs a server in this process on its files.
func start(t *testing.T, dir string, port int) *server.Server {
	t.Helper()
	created, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir, MaxPayload: 4096, NoLog: true, NoSigs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	created.Start()
	if !created.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	t.Cleanup(func() { stop(created) })
	return created
}

func stop(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

// newStream makes a stream of all that is below outbox.
func newStream(t *testing.T, url string, most int32) jetstream.Stream {
	t.Helper()
	conn, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "outbox", Subjects: []string{"outbox.>"}, Storage: jetstream.FileStorage, MaxMsgSize: most})
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func newPublisher(t *testing.T, url string) *Publisher {
	t.Helper()
	p, err := New(Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func message(id, kind string) relay.Message {
	return relay.Message{
		ID: id, Source: "/holdfast/outbox", Queue: "outbox", Kind: kind, Key: "order:9182", Seq: 7, Created: time.Unix(1000, 0).UTC(),
		Headers: map[string]string{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tenant": "a b"},
		Payload: json.RawMessage(`{"total":7}`),
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("gave up waiting until %s", what)
		}
	}
}

func stored(t *testing.T, stream jetstream.Stream) uint64 {
	t.Helper()
	info, err := stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return info.State.Msgs
}

func TestPublish_EventArrivesAsItWasAndOnce(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir(), -1)
	stream, p := newStream(t, s.ClientURL(), -1), newPublisher(t, s.ClientURL())
	for range 3 {
		for _, result := range p.Publish(t.Context(), []relay.Message{message("1", "order.placed"), message("2", "placed")}) {
			if result != nil {
				t.Fatal(result)
			}
		}
	}
	if got := stored(t, stream); got != 2 {
		t.Errorf("the stream has %d messages, want 2: it knows them by their ids", got)
	}
	got, err := stream.GetMsg(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	arrived, err := Receive(got.Header, got.Data)
	if want := message("1", "order.placed"); err != nil || !reflect.DeepEqual(arrived, want) {
		t.Errorf("arrived as %+v, %v, want %+v", arrived, err, want)
	}
	if got.Subject != "outbox.order.placed" || got.Header.Get("Nats-Msg-Id") != "1" || got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("subject %s, headers %v", got.Subject, got.Header)
	}
}

func TestPublish_ServerThatIsRestartedIsNotNowAndThenTakesTheSame(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, dir, -1)
	url := s.ClientURL()
	stream, p := newStream(t, url, -1), newPublisher(t, url)
	batch := []relay.Message{message("1", "placed"), message("2", "placed")}
	if results := p.Publish(t.Context(), batch); results[0] != nil || results[1] != nil {
		t.Fatal(results)
	}
	var port int
	if _, err := fmt.Sscanf(url, "nats://127.0.0.1:%d", &port); err != nil {
		t.Fatal(err)
	}
	stop(s)
	var notNow *relay.NotNowError
	for _, result := range p.Publish(t.Context(), batch) {
		if !errors.As(result, &notNow) {
			t.Errorf("while the server is away: %v, want not now", result)
		}
	}
	if err := p.Ready(t.Context()); err == nil {
		t.Error("it is ready while the server is away")
	}

	start(t, dir, port)
	eventually(t, "it is ready", func() bool { return p.Ready(t.Context()) == nil })
	eventually(t, "the stream takes messages", func() bool {
		results := p.Publish(t.Context(), append(batch, message("3", "placed")))
		return results[0] == nil && results[1] == nil && results[2] == nil
	})
	if got := stored(t, stream); got != 3 {
		t.Errorf("the stream has %d messages, want 3: it knows the first two by their ids", got)
	}
}

func TestPublish_MessageOverALimitIsRefusedWithBothSizes(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir(), -1)
	newStream(t, s.ClientURL(), 1500)
	p := newPublisher(t, s.ClientURL())
	large, larger := message("1", "placed"), message("2", "placed")
	large.Payload = json.RawMessage(`"` + strings.Repeat("x", 1600) + `"`)
	larger.Payload = json.RawMessage(`"` + strings.Repeat("x", 5000) + `"`)
	results := p.Publish(t.Context(), []relay.Message{message("0", "placed"), large, larger})
	if results[0] != nil {
		t.Errorf("a small one: %v", results[0])
	}
	for i, want := range map[int]string{1: "takes 1500", 2: "takes 4096"} {
		var refused *relay.RefusedError
		if !errors.As(results[i], &refused) || !strings.Contains(results[i].Error(), want) || !strings.Contains(results[i].Error(), " bytes") {
			t.Errorf("message %d: %v, want a refusal that says %q", i, results[i], want)
		}
	}
}

func TestPublish_SubjectThatNoStreamTakesIsNotNow(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir(), -1)
	p := newPublisher(t, s.ClientURL())
	var notNow *relay.NotNowError
	result := p.Publish(t.Context(), []relay.Message{message("1", "placed")})[0]
	if !errors.As(result, &notNow) || !strings.Contains(result.Error(), "outbox.placed") {
		t.Errorf("the result is %v", result)
	}
}

func TestNew_ServerThatIsNotThereYetIsWaitedFor(t *testing.T) {
	t.Parallel()
	p := newPublisher(t, "nats://127.0.0.1:1")
	if p.Ready(t.Context()) == nil {
		t.Error("it is ready")
	}
}

func TestToken_IsFitForASubject(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"order.placed": "order.placed", "a b*>": "a_b__", "..a..b.": "a.b", "": "_", "ä": "_"} {
		if got := token(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
