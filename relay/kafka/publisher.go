// Package kafka publishes messages to Kafka as CloudEvents 1.0, with the idempotent producer of
// franz-go. The partition key is the record's key, so that a key's messages stay in one
// partition, chosen as the Java client chooses it.
//
// The producer removes the duplicates of its own retries. A message that is published again,
// because the relay died before its job was completed or a batch had no answer in time, is
// another record with the same ce_id: the receiver knows it by that.
//
// It is tested against kfake, an in-memory Kafka in Go with faults, and not against a real one.
package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/holdfast-pg/holdfast/relay"
)

// DefaultTopic is where messages go unless the configuration says otherwise.
const DefaultTopic = "{queue}"

// DefaultMaxBytes is the largest record that Kafka's brokers take unless they are set up
// otherwise.
const DefaultMaxBytes = 1_000_012

// Config says where to and how. The zero value of every field is the default named here.
type Config struct {
	// Brokers are addresses to begin with.
	Brokers []string

	// Topic is where messages go; {queue} and {kind} in it stand for the message's.
	// Default: DefaultTopic.
	Topic string

	// MaxBytes is the largest message that the topic takes, with its key and headers.
	// Default: DefaultMaxBytes.
	MaxBytes int

	// Options are further options of the client, such as kgo.SASL.
	Options []kgo.Opt
}

// Publisher produces records.
type Publisher struct {
	config Config
	client *kgo.Client
}

// New returns a publisher. Nothing is connected before the first batch.
func New(config Config) (*Publisher, error) {
	if config.Topic == "" {
		config.Topic = DefaultTopic
	}
	if config.MaxBytes == 0 {
		config.MaxBytes = DefaultMaxBytes
	}
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.ClientID("holdfast-relay"),
		kgo.SeedBrokers(config.Brokers...),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
		kgo.ProducerBatchMaxBytes(int32(config.MaxBytes)),
		kgo.ProducerLinger(0),
		// The relay gathers batches, and tries again by itself. A batch that gets no answer in time
		// is given up here too: what is sent later would come behind the next message of its key.
		kgo.AllowIdempotentProduceCancellation(),
	}, config.Options...)...)
	if err != nil {
		return nil, fmt.Errorf("use Kafka: %w", err)
	}
	return &Publisher{config: config, client: client}, nil
}

// Publish produces a batch and waits until all in-sync replicas have each of its records.
func (p *Publisher) Publish(ctx context.Context, batch []relay.Message) []error {
	results := make([]error, len(batch))
	type answer struct {
		at  int
		err error
	}
	answers, waiting := make(chan answer, len(batch)), 0
	for i, message := range batch {
		record := p.record(message)
		if size := sizeOf(record); size > p.config.MaxBytes {
			results[i] = relay.TooLarge(size, p.config.MaxBytes)
			continue
		}
		waiting++
		p.client.Produce(ctx, record, func(_ *kgo.Record, err error) { answers <- answer{i, err} })
	}
	for range waiting { // Each comes by the end of the context.
		each := <-answers
		results[each.at] = p.read(each.err, batch[each.at])
	}
	return results
}

func (p *Publisher) record(message relay.Message) *kgo.Record {
	record := &kgo.Record{
		Topic:   relay.Expand(p.config.Topic, message, topicName),
		Key:     []byte(message.Key),
		Value:   message.Payload,
		Headers: []kgo.RecordHeader{{Key: "content-type", Value: []byte(relay.ContentType)}},
	}
	for _, header := range message.BinaryHeaders("ce_", relay.AsIs) {
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: header.Name, Value: []byte(header.Value)})
	}
	return record
}

// aboutMessage are the errors that Kafka gives a record for what it is.
var aboutMessage = []error{kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord, kerr.InvalidTimestamp, kerr.PolicyViolation, kerr.InvalidTopicException}

// read tells what an error says of a message.
func (p *Publisher) read(err error, message relay.Message) error {
	if err == nil {
		return nil
	}
	for _, refusal := range aboutMessage {
		if errors.Is(err, refusal) {
			size := sizeOf(p.record(message))
			return relay.Refused(fmt.Errorf("%w (the message has %d bytes, at most %d are sent)", err, size, p.config.MaxBytes))
		}
	}
	return relay.NotNow(0, err)
}

// Ready returns nil when a broker answers.
func (p *Publisher) Ready(ctx context.Context) error {
	return p.client.Ping(ctx)
}

// Close ends the client.
func (p *Publisher) Close() error {
	p.client.Close()
	return nil
}

// sizeOf is about what a record is in a batch of its own, before it is compressed.
func sizeOf(record *kgo.Record) int {
	const overhead = 61 + 21 // Of the batch, and of a record's numbers at most.
	size := overhead + len(record.Key) + len(record.Value)
	for _, header := range record.Headers {
		size += 10 + len(header.Key) + len(header.Value)
	}
	return size
}

// topicName makes a text fit for a topic's name: letters, digits, ".", "_" and "-", 249 at most.
func topicName(text string) string {
	fit := []byte(text)
	for i, c := range fit {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			fit[i] = '_'
		}
	}
	return string(fit[:min(len(fit), 249)])
}
