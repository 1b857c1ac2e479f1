package http

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/holdfast-pg/holdfast/relay"
)

// largest is the most that a receiver reads of a request: the limit of a job's payload, and the
// attributes around it.
const largest = 512 << 10

// Receive reads the message of a request, in binary or structured mode, for relay.Ingest. Answer
// 2xx when the transaction of the ingest has committed; 4xx makes the sender give the message up.
func Receive(request *http.Request) (relay.Message, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, request.Body, largest))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return relay.Message{}, fmt.Errorf("the event has more than %d bytes", tooLarge.Limit)
	}
	if err != nil {
		return relay.Message{}, fmt.Errorf("read the event: %w", err)
	}
	if kind, _, _ := mime.ParseMediaType(request.Header.Get("Content-Type")); kind == "application/cloudevents+json" {
		return relay.ReadStructured(body)
	}
	return relay.ReadBinary("ce-", relay.Unescape, body, func(header func(name, value string)) {
		for name := range request.Header {
			header(name, request.Header.Get(name))
		}
	})
}
