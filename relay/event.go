package relay

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ContentType is that of every payload.
const ContentType = "application/json"

// Names of attributes that are no part of the CloudEvents core.
const (
	attributeQueue    = "queue"        // The outbox.
	attributeKey      = "partitionkey" // Of the Partitioning extension.
	attributeSequence = "sequence"     // Of the Sequence extension: 19 digits, so that texts sort as numbers.
)

// headerPrefix stands before the name of a job's header that is no part of the trace context, so
// that none is taken for a header of the transport.
const headerPrefix = "holdfast-"

// Attribute is a CloudEvents attribute, or a header that travels beside them.
type Attribute struct {
	Name, Value string
}

// Attributes returns the attributes of a message as CloudEvents 1.0 names them, without a
// prefix: those of the core, then the extensions, among them the trace context if the job has
// one in its headers.
// See https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md.
func (m Message) Attributes() []Attribute {
	attributes := []Attribute{
		{"specversion", "1.0"},
		{"id", m.ID},
		{"source", m.Source},
		{"type", m.Kind},
	}
	add := func(name, value string) {
		if value != "" {
			attributes = append(attributes, Attribute{name, value})
		}
	}
	add("subject", m.Key)
	if !m.Created.IsZero() {
		add("time", m.Created.UTC().Format(time.RFC3339Nano))
	}
	add(attributeKey, m.Key)
	add(attributeQueue, m.Queue)
	if m.Seq > 0 {
		add(attributeSequence, fmt.Sprintf("%019d", m.Seq))
	}
	return append(attributes, m.Trace()...)
}

// Trace returns the W3C trace context of the job, traceparent and tracestate, as far as it has
// one. See https://www.w3.org/TR/trace-context/.
func (m Message) Trace() []Attribute {
	var trace []Attribute
	for _, name := range []string{"traceparent", "tracestate"} {
		if value := m.Headers[name]; value != "" {
			trace = append(trace, Attribute{name, value})
		}
	}
	return trace
}

// Extra returns the job's other headers, by name, as they travel beside the attributes: in lower
// case, behind "holdfast-". A header whose name is no token of letters, digits, "-" and "_" stays
// behind.
func (m Message) Extra() []Attribute {
	var extra []Attribute
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		if name != "traceparent" && name != "tracestate" && isToken(name) {
			extra = append(extra, Attribute{headerPrefix + strings.ToLower(name), m.Headers[name]})
		}
	}
	return extra
}

func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

// BinaryHeaders returns all that travels beside the payload in binary mode, its attributes behind the
// prefix of the transport's binding, such as "ce-", and their values as encode makes them.
func (m Message) BinaryHeaders(prefix string, encode func(string) string) []Attribute {
	var headers []Attribute
	for _, attribute := range m.Attributes() {
		headers = append(headers, Attribute{prefix + attribute.Name, encode(attribute.Value)})
	}
	for _, other := range slices.Concat(m.Trace(), m.Extra()) {
		headers = append(headers, Attribute{other.Name, encode(other.Value)})
	}
	return headers
}

// Structured returns the message as one JSON document, the CloudEvents JSON format. Headers
// beside the trace context are in the extension "holdfastheaders", as JSON.
func (m Message) Structured() (json.RawMessage, error) {
	event := map[string]any{"datacontenttype": ContentType, "data": m.Payload}
	for _, attribute := range m.Attributes() {
		event[attribute.Name] = attribute.Value
	}
	if others := m.others(); len(others) > 0 {
		encoded, err := json.Marshal(others)
		if err != nil {
			return nil, fmt.Errorf("write the headers: %w", err)
		}
		event[attributeHeaders] = string(encoded)
	}
	return json.Marshal(event)
}

const attributeHeaders = "holdfastheaders"

func (m Message) others() map[string]string {
	others := maps.Clone(m.Headers)
	delete(others, "traceparent")
	delete(others, "tracestate")
	return others
}

// Escape makes a value fit for a header of HTTP or NATS, as the CloudEvents HTTP binding says:
// space, double quote, percent and what is not printable ASCII are percent-encoded.
func Escape(value string) string {
	var escaped strings.Builder
	for i := range len(value) {
		if c := value[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '%' {
			fmt.Fprintf(&escaped, "%%%02X", c)
		} else {
			escaped.WriteByte(c)
		}
	}
	return escaped.String()
}

// Unescape undoes Escape. What is no encoding stays as it is.
func Unescape(value string) string {
	if !strings.Contains(value, "%") {
		return value
	}
	var plain strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] == '%' && i+2 < len(value) {
			if code, err := strconv.ParseUint(value[i+1:i+3], 16, 8); err == nil {
				plain.WriteByte(byte(code))
				i += 2
				continue
			}
		}
		plain.WriteByte(value[i])
	}
	return plain.String()
}

// AsIs is the encoding of transports whose headers take any text, such as Kafka.
func AsIs(value string) string { return value }

// errNoEvent says that what arrived is no CloudEvent.
var errNoEvent = errors.New("no CloudEvent of version 1.0: it needs specversion, id, source and type")

// ReadBinary reads what arrived in binary mode: each turns the headers to it, in any case of
// letters, and decode undoes the encoding of their values. Errors: what is no CloudEvent 1.0.
func ReadBinary(prefix string, decode func(string) string, payload []byte, each func(header func(name, value string))) (Message, error) {
	message := Message{Payload: payload}
	version := ""
	each(func(name, value string) {
		name, value = strings.ToLower(name), decode(value)
		if attribute, is := strings.CutPrefix(name, prefix); is {
			message.set(attribute, value, &version)
		} else if header, is := strings.CutPrefix(name, headerPrefix); is {
			message.setHeader(header, value)
		} else if name == "traceparent" || name == "tracestate" {
			message.setHeader(name, value)
		}
	})
	return message, message.check(version)
}

// ReadStructured reads one JSON document, the CloudEvents JSON format.
func ReadStructured(document []byte) (Message, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(document, &fields); err != nil {
		return Message{}, fmt.Errorf("read the event: %w", err)
	}
	message := Message{Payload: fields["data"]}
	version := ""
	for name, field := range fields {
		var value string
		if json.Unmarshal(field, &value) != nil {
			continue
		}
		if name == attributeHeaders {
			for header, text := range readHeaders(json.RawMessage(value)) {
				message.setHeader(header, text)
			}
			continue
		}
		if name != "data" {
			message.set(name, value, &version)
		}
	}
	return message, message.check(version)
}

func (m *Message) set(attribute, value string, version *string) {
	switch attribute {
	case "specversion":
		*version = value
	case "id":
		m.ID = value
	case "source":
		m.Source = value
	case "type":
		m.Kind = value
	case attributeKey:
		m.Key = value
	case "subject":
		if m.Key == "" {
			m.Key = value
		}
	case "time":
		m.Created, _ = time.Parse(time.RFC3339Nano, value)
	case attributeQueue:
		m.Queue = value
	case attributeSequence:
		m.Seq, _ = strconv.ParseInt(value, 10, 64)
	case "traceparent", "tracestate":
		m.setHeader(attribute, value)
	}
}

func (m *Message) setHeader(name, value string) {
	if m.Headers == nil {
		m.Headers = map[string]string{}
	}
	m.Headers[name] = value
}

func (m *Message) check(version string) error {
	if version != "1.0" || m.ID == "" || m.Source == "" || m.Kind == "" {
		return errNoEvent
	}
	return nil
}
