// Package nats publishes messages to NATS JetStream as CloudEvents 1.0. The job's id is the
// Nats-Msg-Id, by which a stream drops what it has within its duplicate window (2 minutes
// unless the stream says otherwise); a receiver knows older duplicates by ce-id.
package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-pg/holdfast/relay"
)

// DefaultSubject is where messages go unless the configuration says otherwise.
const DefaultSubject = "{queue}.{kind}"

// pendingMost is how many messages may wait for their acknowledgement: more than a batch has.
const pendingMost = 1 << 16

// Config says where to and how. The zero value of every field is the default named here.
type Config struct {
	// URL are the servers, as nats.Connect takes them, with commas between several.
	URL string

	// Subject is where messages go; {queue}, {kind} and {key} in it stand for the message's.
	// Default: DefaultSubject. Some stream must take it.
	Subject string

	// Options are further options of the connection, such as nats.UserCredentials.
	Options []nats.Option
}

// Publisher publishes to JetStream.
type Publisher struct {
	subject string
	conn    *nats.Conn
	stream  jetstream.JetStream

	mutex sync.Mutex
	lost  chan struct{} // Closed when the connection is lost.
}

// New returns a publisher. Servers that cannot be reached are waited for: Ready tells when they
// are there.
func New(config Config) (*Publisher, error) {
	p := &Publisher{subject: config.Subject, lost: make(chan struct{})}
	if p.subject == "" {
		p.subject = DefaultSubject
	}
	options := append([]nats.Option{
		nats.Name("holdfast relay"),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(250 * time.Millisecond),
		// A message that waited in a buffer for the next connection would be sent after the relay
		// had given its job back, and perhaps after the next one of its key.
		nats.ReconnectBufSize(-1),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { p.lose() }),
	}, config.Options...)
	conn, err := nats.Connect(config.URL, options...)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	p.conn = conn
	if p.stream, err = jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(pendingMost)); err != nil {
		conn.Close()
		return nil, fmt.Errorf("use JetStream: %w", err)
	}
	return p, nil
}

// lose lets go of those who wait for acknowledgements that cannot come any more.
func (p *Publisher) lose() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	close(p.lost)
	p.lost = make(chan struct{})
}

func (p *Publisher) losing() <-chan struct{} {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.lost
}

// Publish sends a batch and waits until the stream has acknowledged each of its messages.
func (p *Publisher) Publish(ctx context.Context, batch []relay.Message) []error {
	lost := p.losing()
	if !p.conn.IsConnected() {
		return relay.All(batch, relay.NotNow(0, p.away()))
	}
	results := make([]error, len(batch))
	acks := make([]jetstream.PubAckFuture, len(batch))
	for i, message := range batch {
		acks[i], results[i] = p.send(ctx, message)
	}
	for i, ack := range acks {
		if ack != nil {
			results[i] = p.await(ctx, lost, ack)
		}
	}
	return results
}

func (p *Publisher) send(ctx context.Context, message relay.Message) (jetstream.PubAckFuture, error) {
	sent := nats.NewMsg(relay.Expand(p.subject, message, token))
	sent.Data = message.Payload
	sent.Header.Set("Content-Type", relay.ContentType)
	for _, header := range message.BinaryHeaders("ce-", relay.Escape) {
		sent.Header.Set(header.Name, header.Value)
	}
	sent.Header.Set(jetstream.MsgIDHeader, message.ID)
	if size, limit := sizeOf(sent), int(p.conn.MaxPayload()); limit > 0 && size > limit {
		return nil, relay.TooLarge(size, limit)
	}
	ack, err := p.stream.PublishMsgAsync(sent, jetstream.WithRetryAttempts(0))
	if err != nil {
		return nil, p.read(ctx, sent, err)
	}
	return ack, nil
}

// await waits for an acknowledgement. One that says that the stream has the message already is
// as good.
func (p *Publisher) await(ctx context.Context, lost <-chan struct{}, ack jetstream.PubAckFuture) error {
	select {
	case <-ack.Ok():
		return nil
	case err := <-ack.Err():
		return p.read(ctx, ack.Msg(), err)
	case <-lost:
		return relay.NotNow(0, p.away())
	case <-ctx.Done():
		return relay.NotNow(0, fmt.Errorf("no acknowledgement: %w", ctx.Err()))
	}
}

// read tells what an error says of a message: a refusal of the stream is about the message, all
// else about the destination.
func (p *Publisher) read(ctx context.Context, sent *nats.Msg, err error) error {
	var refusal *jetstream.APIError
	switch {
	case errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum):
		if limit := p.streamLimit(ctx, sent.Subject); limit > 0 {
			return relay.TooLarge(sizeOf(sent), limit)
		}
		return relay.Refused(fmt.Errorf("the message has %d bytes: %w", sizeOf(sent), err))
	case errors.Is(err, nats.ErrMaxPayload):
		return relay.TooLarge(sizeOf(sent), int(p.conn.MaxPayload()))
	case errors.As(err, &refusal) && refusal.Code >= 400 && refusal.Code < 500, errors.Is(err, nats.ErrBadSubject):
		return relay.Refused(err)
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrNoStreamResponse):
		return relay.NotNow(0, fmt.Errorf("no stream takes the subject %s, or it is starting: %w", sent.Subject, err))
	default:
		return relay.NotNow(0, err)
	}
}

// streamLimit is the largest message that the stream of a subject takes; 0: it does not say.
func (p *Publisher) streamLimit(ctx context.Context, subject string) int {
	name, err := p.stream.StreamNameBySubject(ctx, subject)
	if err != nil {
		return 0
	}
	stream, err := p.stream.Stream(ctx, name)
	if err != nil {
		return 0
	}
	return int(stream.CachedInfo().Config.MaxMsgSize)
}

// away says why there is no connection.
func (p *Publisher) away() error {
	if err := p.conn.LastError(); err != nil {
		return fmt.Errorf("NATS cannot be reached: %w", err)
	}
	return errors.New("NATS cannot be reached")
}

// Ready returns nil when the server is there and has JetStream.
func (p *Publisher) Ready(ctx context.Context) error {
	if !p.conn.IsConnected() {
		return p.away()
	}
	if _, err := p.stream.AccountInfo(ctx); err != nil {
		return fmt.Errorf("ask for JetStream: %w", err)
	}
	return nil
}

// Close ends the connection.
func (p *Publisher) Close() error {
	p.conn.Close()
	return nil
}

// sizeOf is what a server and a stream count of a message: its headers as they are written, and
// the payload.
func sizeOf(sent *nats.Msg) int {
	size := len("NATS/1.0\r\n") + len("\r\n") + len(sent.Data)
	for name, values := range sent.Header {
		for _, value := range values {
			size += len(name) + len(": ") + len(value) + len("\r\n")
		}
	}
	return size
}

// token makes a text fit for a subject: what is not printable ASCII, and the wildcards, become
// "_". Dots stay, between tokens.
func token(text string) string {
	fit := strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f || r == '*' || r == '>' {
			return '_'
		}
		return r
	}, text)
	tokens := strings.FieldsFunc(fit, func(r rune) bool { return r == '.' })
	if len(tokens) == 0 {
		return "_"
	}
	return strings.Join(tokens, ".")
}
