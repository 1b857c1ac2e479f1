package integration

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats-server/v2/server"
	natsio "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
	"github.com/holdfast-pg/holdfast/relay"
	"github.com/holdfast-pg/holdfast/relay/nats"
)

// The server and the relay are processes, and are killed by SIGKILL at turns, each three times.
// In short it is a fifth of the messages, over a quarter of the keys.
func TestRelay_KilledWithItsBrokerLosesNothingAndKeepsTheOrder(t *testing.T) {
	t.Parallel()
	messages, keys := 10_000, 200
	if testing.Short() {
		messages, keys = 2_000, 50
	}
	sender, receiver := pgtest.New(t), pgtest.New(t)
	makeOrdered(t, sender, "outbox")
	makeOrdered(t, receiver, "arrivals")
	fillOutbox(t, sender, messages, keys)

	broker := newKillableNATS(t)
	broker.start(t)
	stream := broker.newStream(t)
	running := startTestRelay(t, sender, broker.url, "relay-0")
	began := time.Now()
	for kill := range 6 {
		untilPublished(t, sender, messages*(kill+1)/8)
		t.Logf("kill %d after %s", kill, time.Since(began).Round(time.Millisecond))
		if kill%2 == 0 {
			running.signal(t, syscall.SIGKILL)
			running.ends(t, -1)
			// Its leases end at once, as if the test had waited for them.
			sender.Exec(t, "UPDATE holdfast.inbox SET lease_expires_at = claimed_at WHERE status = 'processing' AND claimed_by LIKE $1", fmt.Sprintf("relay-%d-%%", kill))
			running = startTestRelay(t, sender, broker.url, fmt.Sprintf("relay-%d", kill+2))
		} else {
			broker.kill(t)
			broker.start(t)
		}
	}
	untilPublished(t, sender, messages)
	t.Logf("all are published after %s", time.Since(began).Round(time.Millisecond))
	running.signal(t, syscall.SIGTERM)
	running.ends(t, 0)
	wantNothingHeld(t, sender)

	arrived := readStream(t, stream)
	t.Logf("the stream has %d messages of %d", len(arrived), messages)
	// As if the last acknowledgements of the receiver had been lost: a part of them comes again.
	for batch := range slices.Chunk(append(arrived, arrived[len(arrived)-1000:]...), 1000) {
		if _, err := relay.Ingest(t.Context(), receiver.Pool, "arrivals", batch); err != nil {
			t.Fatal(err)
		}
	}
	wantInOrder(t, receiver, messages, keys)
}

// fillOutbox enqueues messages round by round: the n-th of a key has the payload n.
func fillOutbox(t *testing.T, database *pgtest.Database, messages, keys int) {
	t.Helper()
	var jobs []domain.NewJob
	for i := range messages {
		jobs = append(jobs, domain.NewJob{
			Args:    domain.RawArgs{JobKind: "placed", Payload: []byte(strconv.Itoa(i / keys))},
			Options: []domain.EnqueueOption{domain.OnQueue("outbox"), domain.Key(fmt.Sprintf("order:%d", i%keys)), domain.MaxAttempts(100)},
		})
	}
	for batch := range slices.Chunk(jobs, 1000) {
		if _, err := domain.EnqueueMany(t.Context(), database.Pool, batch...); err != nil {
			t.Fatal(err)
		}
	}
}

// untilPublished waits until so many messages are published and recorded.
func untilPublished(t *testing.T, database *pgtest.Database, messages int) {
	t.Helper()
	var hurried time.Time
	pgtest.Eventually(t, patience, fmt.Sprintf("%d messages are published", messages), func() bool {
		if time.Since(hurried) > 300*time.Millisecond { // It reads the whole table.
			// What a killed relay held comes back with a backoff, which the test does not wait for.
			database.Exec(t, "UPDATE holdfast.inbox SET available_at = now() WHERE status = 'pending' AND available_at > now()")
			hurried = time.Now()
		}
		return pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox_archive") >= messages
	})
}

// wantInOrder checks that the receiver has each message once, those of a key in their order.
func wantInOrder(t *testing.T, receiver *pgtest.Database, messages, keys int) {
	t.Helper()
	if got := pgtest.Value[int](t, receiver, "SELECT count(*) FROM holdfast.inbox"); got != messages {
		t.Errorf("the receiver has %d jobs, want %d", got, messages)
	}
	wrong := pgtest.Values[string](t, receiver, `
		SELECT partition_key
		FROM (
			SELECT partition_key, payload::text::int - row_number() OVER (PARTITION BY partition_key ORDER BY seq) + 1 AS shift
			FROM holdfast.inbox
		) AS place
		GROUP BY partition_key
		HAVING min(shift) <> 0 OR max(shift) <> 0 OR count(*) <> $1`, messages/keys)
	if len(wrong) > 0 {
		t.Errorf("%d keys are out of order or incomplete, such as %s", len(wrong), wrong[0])
	}
}

// The variables that make this program a NATS server, or a relay, instead of a test.
const (
	natsDir  = "HOLDFAST_TEST_NATS_DIR"
	natsPort = "HOLDFAST_TEST_NATS_PORT"
	relayURL = "HOLDFAST_TEST_RELAY_URL"
	relayTo  = "HOLDFAST_TEST_RELAY_TO"

	relayName = "HOLDFAST_TEST_RELAY_NAME"
)

// killableNATS is a NATS server with JetStream on files, in a process of its own.
type killableNATS struct {
	dir, port, url string
	running        *process
}

func newKillableNATS(t *testing.T) *killableNATS {
	t.Helper()
	var config net.ListenConfig
	socket, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	_, port, err := net.SplitHostPort(socket.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return &killableNATS{dir: t.TempDir(), port: port, url: "nats://127.0.0.1:" + port}
}

func (k *killableNATS) start(t *testing.T) {
	t.Helper()
	k.running = startChild(t, natsDir+"="+k.dir, natsPort+"="+k.port).says(t, "serving")
}

func (k *killableNATS) kill(t *testing.T) {
	t.Helper()
	k.running.signal(t, syscall.SIGKILL)
	k.running.ends(t, -1)
}

func (k *killableNATS) newStream(t *testing.T) jetstream.Stream {
	t.Helper()
	conn, err := natsio.Connect(k.url, natsio.MaxReconnects(-1), natsio.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "outbox", Subjects: []string{"outbox.>"}, Storage: jetstream.FileStorage})
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// readStream reads all messages that the stream has.
func readStream(t *testing.T, stream jetstream.Stream) []relay.Message {
	t.Helper()
	info, err := stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := stream.OrderedConsumer(t.Context(), jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var messages []relay.Message
	for len(messages) < int(info.State.Msgs) {
		batch, err := consumer.Fetch(500, jetstream.FetchMaxWait(5*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		before := len(messages)
		for each := range batch.Messages() {
			message, err := nats.Receive(each.Headers(), each.Data())
			if err != nil {
				t.Fatal(err)
			}
			messages = append(messages, message)
		}
		if len(messages) == before {
			t.Fatalf("the stream gives %d of its %d messages: %v", len(messages), info.State.Msgs, batch.Error())
		}
	}
	return messages
}

// startChild starts this program once more, as what the variables make it.
func startChild(t *testing.T, variables ...string) *process {
	t.Helper()
	p := &process{command: exec.Command(os.Args[0]), exited: make(chan struct{})}
	p.command.Env = append(os.Environ(), variables...)
	p.command.Stdout, p.command.Stderr = &p.stdout, &p.stderr
	// It ends with this program, however that ends, because the pipe does.
	if _, err := p.command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	return p.start(t)
}

func startTestRelay(t *testing.T, database *pgtest.Database, to, name string) *process {
	t.Helper()
	return startChild(t, relayURL+"="+database.URL, relayTo+"="+to, relayName+"="+name)
}

// endWithParent ends this process when the one that started it has gone.
func endWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(3)
}

// runNATS serves until the process is killed.
func runNATS(dir, port string) int {
	number, err := strconv.Atoi(port)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	created, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: number, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	created.Start()
	if !created.ReadyForConnections(patience) {
		fmt.Fprintln(os.Stderr, "not ready in time")
		return 1
	}
	fmt.Println("serving")
	endWithParent()
	return 0
}

// runTestRelay publishes until the process is killed or told to stop.
func runTestRelay(url, to string) int {
	go endWithParent()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := relayInTest(ctx, url, to); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func relayInTest(ctx context.Context, url, to string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	publisher, err := nats.New(nats.Config{URL: to})
	if err != nil {
		return err
	}
	config := relay.Config{Queue: "outbox", Timeout: 600 * time.Millisecond, Worker: quick()}
	config.Worker.Lease = 2 * time.Second
	config.Worker.Housekeeping = 200 * time.Millisecond
	config.Worker.WorkerTTL = 1500 * time.Millisecond
	config.Worker.RingCache = 100 * time.Millisecond
	config.Worker.Affinity = holdfast.AffinityNone // The killed own no buckets that would wait for their heartbeats to end.
	config.Worker.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	joined := 0
	config.Worker.NewID = func() string { joined++; return fmt.Sprintf("%s-%d", os.Getenv(relayName), joined) }
	created, err := relay.New(pool, config, publisher)
	if err != nil {
		return err
	}
	return created.Run(ctx)
}
