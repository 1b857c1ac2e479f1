package relay

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

func event() Message {
	return Message{
		ID: "0193d3f0-7c2a-7e4b-9a51-6f1d3c2a01f4", Source: "/holdfast/outbox", Queue: "outbox", Kind: "order.placed", Key: "order:9182 ä\"%",
		Seq: 42, Created: time.Date(2026, time.March, 4, 12, 0, 0, 5000, time.UTC),
		Headers: map[string]string{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate": "a=1", "tenant": "a b"},
		Payload: json.RawMessage(`{"total":7}`),
	}
}

func TestEvent_BinaryModeComesBackAsItWas(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prefix         string
		encode, decode func(string) string
	}{"http": {"ce-", Escape, Unescape}, "kafka": {"ce_", AsIs, AsIs}} {
		headers := event().BinaryHeaders(test.prefix, test.encode)
		got, err := ReadBinary(test.prefix, test.decode, event().Payload, func(header func(name, value string)) {
			for _, each := range headers {
				header(strings.ToUpper(each.Name), each.Value) // HTTP's are in any case.
			}
		})
		if err != nil || !reflect.DeepEqual(got, event()) {
			t.Errorf("%s: %+v comes back as %+v, %v", name, event(), got, err)
		}
	}
}

func TestEvent_StructuredModeComesBackAsItWas(t *testing.T) {
	t.Parallel()
	document, err := event().Structured()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadStructured(document)
	if err != nil || !reflect.DeepEqual(got, event()) {
		t.Errorf("%s comes back as %+v, %v", document, got, err)
	}
}

func TestEvent_HasTheAttributesOfCloudEvents(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, each := range event().BinaryHeaders("ce-", Escape) {
		lines = append(lines, each.Name+": "+each.Value)
	}
	want := strings.Join([]string{
		"ce-specversion: 1.0",
		"ce-id: 0193d3f0-7c2a-7e4b-9a51-6f1d3c2a01f4",
		"ce-source: /holdfast/outbox",
		"ce-type: order.placed",
		"ce-subject: order:9182%20%C3%A4%22%25",
		"ce-time: 2026-03-04T12:00:00.000005Z",
		"ce-partitionkey: order:9182%20%C3%A4%22%25",
		"ce-queue: outbox",
		"ce-sequence: 0000000000000000042",
		"ce-traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"ce-tracestate: a=1",
		"traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"tracestate: a=1",
		"holdfast-tenant: a%20b",
	}, "\n")
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("the headers are\n%s\nwant\n%s", got, want)
	}
}

// A header may not pose as one of the transport's, nor end its line.
func TestEvent_HeadersCannotBreakOut(t *testing.T) {
	t.Parallel()
	message := event()
	message.Headers = map[string]string{"Host": "evil", "a b": "1", "x\r\ny": "1", "tenant": "a\r\nce-id: 7"}
	for _, each := range message.BinaryHeaders("ce-", Escape) {
		if !isToken(each.Name) || strings.ContainsAny(each.Value, "\r\n") || each.Name == "Host" {
			t.Errorf("header %q: %q", each.Name, each.Value)
		}
	}
}

func TestEvent_WhatIsNoCloudEventIsRefused(t *testing.T) {
	t.Parallel()
	for _, document := range []string{
		`{}`, `[]`, `{"specversion":"0.3","id":"1","source":"/a","type":"b"}`, `{"specversion":"1.0","source":"/a","type":"b"}`,
		`{"specversion":"1.0","id":"1","type":"b"}`, `{"specversion":"1.0","id":"1","source":"/a"}`,
	} {
		if got, err := ReadStructured([]byte(document)); err == nil {
			t.Errorf("%s is read as %+v", document, got)
		}
	}
}

func FuzzEscape(f *testing.F) {
	for _, text := range []string{"", "a b", "%", "%2", "ä\"\r\n\x00", "%%41"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got := Unescape(Escape(text)); got != text {
			t.Errorf("%q comes back as %q", text, got)
		}
	})
}
