package kafka

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/holdfast-pg/holdfast/relay"
)

// Receive reads the message of a record, for relay.Ingest. Commit its offset when the transaction
// of the ingest has committed.
func Receive(record *kgo.Record) (relay.Message, error) {
	return relay.ReadBinary("ce_", relay.AsIs, record.Value, func(header func(name, value string)) {
		for _, each := range record.Headers {
			header(each.Key, string(each.Value))
		}
	})
}
