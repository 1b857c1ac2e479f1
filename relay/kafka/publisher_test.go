package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/holdfast-pg/holdfast/relay"
)

func start(t *testing.T) *kfake.Cluster {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "outbox"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster
}

func newPublisher(t *testing.T, config Config) *Publisher {
	t.Helper()
	p, err := New(config)
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

func message(id, key string) relay.Message {
	return relay.Message{
		ID: id, Source: "/holdfast/outbox", Queue: "outbox", Kind: "order placed", Key: key, Seq: 7, Created: time.Unix(1000, 0).UTC(),
		Headers: map[string]string{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tenant": "ä"},
		Payload: json.RawMessage(`{"total":7}`),
	}
}

// consume reads so many records of the topic.
func consume(t *testing.T, cluster *kfake.Cluster, n int) []*kgo.Record {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ConsumeTopics("outbox"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var records []*kgo.Record
	for len(records) < n {
		fetched := client.PollFetches(ctx)
		if err := fetched.Err(); err != nil {
			t.Fatal(err)
		}
		records = append(records, fetched.Records()...)
	}
	return records
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func wantTaken(t *testing.T, results []error) {
	t.Helper()
	for _, result := range results {
		if result != nil {
			t.Fatal(result)
		}
	}
}

func TestPublish_EventArrivesAsItWasInThePartitionOfItsKey(t *testing.T) {
	t.Parallel()
	cluster := start(t)
	p := newPublisher(t, Config{Brokers: cluster.ListenAddrs()})
	var batch []relay.Message
	for i := range 30 {
		batch = append(batch, message(strconv.Itoa(i), fmt.Sprintf("order:%d", i%10)))
	}
	wantTaken(t, p.Publish(within(t, 10*time.Second), batch))
	partitions := map[string][]int32{}
	for _, record := range consume(t, cluster, 30) {
		arrived, err := Receive(record)
		if err != nil {
			t.Fatal(err)
		}
		if want := message(arrived.ID, arrived.Key); !reflect.DeepEqual(arrived, want) {
			t.Fatalf("arrived as %+v, want %+v", arrived, want)
		}
		partitions[arrived.Key] = append(partitions[arrived.Key], record.Partition)
	}
	for key, in := range partitions {
		if len(slices.Compact(in)) != 1 {
			t.Errorf("key %s is in the partitions %v", key, in)
		}
	}
}

// The reply is lost, the broker has the records: the producer's own retry is no duplicate.
func TestPublish_LostReplyMakesNoDuplicate(t *testing.T) {
	t.Parallel()
	cluster := start(t)
	p := newPublisher(t, Config{Brokers: cluster.ListenAddrs()})
	fault := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicasAfterAppend})
	wantTaken(t, p.Publish(within(t, 10*time.Second), []relay.Message{message("1", "a"), message("2", "a")}))
	if fault.Hits() == 0 {
		t.Error("no request met the fault")
	}
	wantTaken(t, p.Publish(within(t, 10*time.Second), []relay.Message{message("3", "a")}))
	var ids []string
	for _, record := range consume(t, cluster, 3) {
		arrived, err := Receive(record)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, arrived.ID)
	}
	if got := strings.Join(ids, " "); got != "1 2 3" {
		t.Errorf("the partition has %s, want 1 2 3", got)
	}
}

func TestPublish_BrokerThatTakesNothingIsNotNowAndThenTakesTheSame(t *testing.T) {
	t.Parallel()
	cluster := start(t)
	p := newPublisher(t, Config{Brokers: cluster.ListenAddrs()})
	fault := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotLeaderForPartition, Count: -1})
	began := time.Now()
	var notNow *relay.NotNowError
	result := p.Publish(within(t, time.Second), []relay.Message{message("1", "a")})[0]
	if took := time.Since(began); !errors.As(result, &notNow) || took > 10*time.Second {
		t.Errorf("after %s: %v, want not now by the end of the context", took, result)
	}
	fault.Remove()
	if err := p.Ready(within(t, 10*time.Second)); err != nil {
		t.Errorf("not ready: %v", err)
	}
	wantTaken(t, p.Publish(within(t, 20*time.Second), []relay.Message{message("1", "a"), message("2", "a")}))
}

func TestPublish_RefusalIsInTheBrokersWords(t *testing.T) {
	t.Parallel()
	cluster := start(t)
	p := newPublisher(t, Config{Brokers: cluster.ListenAddrs(), MaxBytes: 2000})
	large := message("1", "a")
	large.Payload = json.RawMessage(`"` + strings.Repeat("x", 3000) + `"`)
	results := p.Publish(within(t, 10*time.Second), []relay.Message{large, message("2", "a")})
	var refused *relay.RefusedError
	if !errors.As(results[0], &refused) || !strings.Contains(results[0].Error(), "takes 2000") || !strings.Contains(results[0].Error(), " bytes") || results[1] != nil {
		t.Errorf("the results are %v", results)
	}

	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.PolicyViolation})
	result := p.Publish(within(t, 10*time.Second), []relay.Message{message("3", "b")})[0]
	if !errors.As(result, &refused) || !strings.Contains(result.Error(), "POLICY_VIOLATION") {
		t.Errorf("the result is %v", result)
	}
}

func TestReady_BrokerThatIsNotThere(t *testing.T) {
	t.Parallel()
	p := newPublisher(t, Config{Brokers: []string{"127.0.0.1:1"}})
	if p.Ready(within(t, time.Second)) == nil {
		t.Error("it is ready")
	}
}
