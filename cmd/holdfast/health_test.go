package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealth_LiveSaysWhatTheWorkerSays(t *testing.T) {
	status, body := http.StatusOK, `{"status": "ok"}`+"\n"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/livez" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	got := execute(t, "health", "live", "--address", server.URL)
	if got.code != exitDone || got.stdout != "address  "+server.URL+"/livez\nanswer   {\"status\": \"ok\"}\n" {
		t.Errorf("%+v", got)
	}
	got = execute(t, "health", "live", "--address", server.URL+"/", "-o", "jsonl")
	if got.code != exitDone || got.stdout != `{"address":"`+server.URL+`/livez","answer":{"status":"ok"}}`+"\n" {
		t.Errorf("%+v", got)
	}
	status, body = http.StatusServiceUnavailable, `{"status": "stopping"}`
	got = execute(t, "health", "live", "--address", server.URL)
	if got.code != exitFailed || got.stdout != "" || !strings.Contains(got.stderr, `not well: 503 Service Unavailable: {"status": "stopping"}`) {
		t.Errorf("%+v", got)
	}
	status, body = http.StatusOK, "<html>"
	if got = execute(t, "health", "live", "--address", server.URL); got.code != exitFailed || !strings.Contains(got.stderr, "something else than a worker") {
		t.Errorf("%+v", got)
	}
}

func TestHealth_LiveFailsWhenNobodyAnswers(t *testing.T) {
	silent := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-silent }))
	defer server.Close()
	defer close(silent)
	if got := execute(t, "health", "live", "--address", server.URL, "--timeout", "50ms"); got.code != exitFailed || !strings.Contains(got.stderr, "no answer within 50ms") {
		t.Errorf("%+v", got)
	}
	if got := execute(t, "health", "live", "--address", "http://127.0.0.1:1"); got.code != exitFailed || !strings.Contains(got.stderr, "connection refused") {
		t.Errorf("%+v", got)
	}
}
