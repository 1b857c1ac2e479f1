package nats

import (
	"github.com/nats-io/nats.go"

	"github.com/holdfast-pg/holdfast/relay"
)

// Receive reads the message that arrived, for relay.Ingest. Acknowledge it when the transaction
// of the ingest has committed.
func Receive(header nats.Header, data []byte) (relay.Message, error) {
	return relay.ReadBinary("ce-", relay.Unescape, data, func(each func(name, value string)) {
		for name := range header {
			each(name, header.Get(name))
		}
	})
}
