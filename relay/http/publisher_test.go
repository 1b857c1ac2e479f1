package http

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/relay"
)

func message(id string) relay.Message {
	return relay.Message{
		ID: id, Source: "/holdfast/outbox", Queue: "outbox", Kind: "placed", Key: "order:9182", Seq: 7, Created: time.Unix(1000, 0).UTC(),
		Headers: map[string]string{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tenant": "a"},
		Payload: json.RawMessage(`{"total":7}`),
	}
}

// serve answers each request as the test says.
func serve(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL
}

func TestPublish_EventArrivesAsItWasInBothModes(t *testing.T) {
	t.Parallel()
	for _, structured := range []bool{false, true} {
		var got relay.Message
		var seen http.Header
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			var err error
			seen = r.Header
			if got, err = Receive(r); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
			}
		})
		publisher := New(Config{URL: url, Structured: structured, Header: http.Header{"Authorization": {"Bearer x"}}})
		results := publisher.Publish(t.Context(), []relay.Message{message("1")})
		if results[0] != nil {
			t.Fatal(results[0])
		}
		if !reflect.DeepEqual(got, message("1")) {
			t.Errorf("structured %t: arrives as %+v", structured, got)
		}
		if seen.Get("Idempotency-Key") != "1" || seen.Get("Traceparent") != message("1").Headers["traceparent"] || seen.Get("Authorization") != "Bearer x" {
			t.Errorf("structured %t: the headers are %v", structured, seen)
		}
		if err := publisher.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestPublish_AnswerDecides(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var status int
		if _, err := fmt.Sscan(r.Header.Get("Ce-Id"), &status); err != nil {
			t.Error(err)
		}
		if status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "7")
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(" because\n"))
	})
	for status, want := range map[int]string{
		200: "taken", 202: "taken", 204: "taken", 302: "not now", 400: "refused", 401: "not now", 403: "refused", 404: "refused", 407: "not now", 408: "not now",
		413: "refused", 422: "refused", 425: "not now", 429: "not now", 500: "not now", 502: "not now", 503: "not now",
	} {
		result := New(Config{URL: url}).Publish(t.Context(), []relay.Message{message(strconv.Itoa(status))})[0]
		if got := kindOf(result); got != want {
			t.Errorf("%d: %s (%v), want %s", status, got, result, want)
		}
		if result != nil && !strings.Contains(result.Error(), strconv.Itoa(status)) {
			t.Errorf("%d: the error %q does not say so", status, result)
		}
		if want == "refused" && !strings.Contains(result.Error(), "because") {
			t.Errorf("%d: the error %q is not in the destination's words", status, result)
		}
		if status == http.StatusRequestEntityTooLarge && !strings.Contains(result.Error(), "11 bytes") {
			t.Errorf("%d: the error %q does not say the size", status, result)
		}
		var notNow *relay.NotNowError
		if status == http.StatusTooManyRequests && (!errors.As(result, &notNow) || notNow.After != 7*time.Second) {
			t.Errorf("429: %#v, want to be left alone for 7s", result)
		}
	}
}

func kindOf(result error) string {
	var refused *relay.RefusedError
	var notNow *relay.NotNowError
	switch {
	case result == nil:
		return "taken"
	case errors.As(result, &refused):
		return "refused"
	case errors.As(result, &notNow):
		return "not now"
	default:
		return "failed"
	}
}

// One message that the receiver chokes on must not stop those behind it.
func TestPublish_OneThatFailsAmongOthersSpendsAnAttempt(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Ce-Id") == "poison" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	results := New(Config{URL: url}).Publish(t.Context(), []relay.Message{message("1"), message("poison"), message("2")})
	if got := []string{kindOf(results[0]), kindOf(results[1]), kindOf(results[2])}; !reflect.DeepEqual(got, []string{"taken", "failed", "taken"}) {
		t.Errorf("the results are %v", got)
	}
}

func TestPublish_DestinationThatIsDownIsNotNowAndNamesNoSecret(t *testing.T) {
	t.Parallel()
	result := New(Config{URL: "http://user:secret@127.0.0.1:1/hook?token=secret"}).Publish(t.Context(), []relay.Message{message("1")})[0]
	if kindOf(result) != "not now" || strings.Contains(result.Error(), "secret") || !strings.Contains(result.Error(), "127.0.0.1:1") {
		t.Errorf("the result is %v", result)
	}
}

func TestRetryAfter_SecondsOrAMoment(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-5": 0, "30": 30 * time.Second, "Wed, 04 Mar 2026 12:01:00 GMT": time.Minute, "Wed, 04 Mar 2026 11:00:00 GMT": 0,
	} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("%q is %s, want %s", value, got, want)
		}
	}
}

func TestReceive_RequestThatIsTooLargeOrNoEventIsRefused(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"no event": "{}", "too large": strings.Repeat("x", largest+1)} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
		if _, err := Receive(request); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
