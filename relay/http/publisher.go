// Package http publishes messages as CloudEvents 1.0 over HTTP, one request each, several at a
// time. The receiver knows a message that is sent again by ce-id and by Idempotency-Key.
// See https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md.
package http

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-pg/holdfast/relay"
)

// answerShown bounds what is kept of an answer's body, in bytes.
const answerShown = 500

// Config says where to and how. The zero value of every field is the default named here.
type Config struct {
	// URL takes the requests. {queue}, {kind} and {key} in its path stand for the message's.
	URL string

	// Structured sends the whole event as one JSON document. Default: binary mode, the payload as
	// the body and the attributes in headers.
	Structured bool

	// Header is sent with every request, such as Authorization. Default: none.
	Header http.Header

	// Concurrency is how many requests are under way at once. Default: 16.
	Concurrency int

	// Client sends them. Default: one of its own, that follows no redirect.
	Client *http.Client
}

// Publisher posts messages.
type Publisher struct {
	config Config
}

// New returns a publisher.
func New(config Config) *Publisher {
	if config.Concurrency == 0 {
		config.Concurrency = 16
	}
	if config.Client == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = config.Concurrency
		config.Client = &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return &Publisher{config: config}
}

// Publish posts a batch. An answer of 2xx takes the message; 4xx refuses it for good, but for
// 408, 425 and 429, which ask to come back later, and 401 and 407, which speak of whoever sends:
// these, all other answers and none at all put the whole destination off, as long as Retry-After
// says. A message that is answered 500 or 501 while others of its batch are taken has failed by
// itself, and spends an attempt: it must not stop the others for ever.
func (p *Publisher) Publish(ctx context.Context, batch []relay.Message) []error {
	answers := make([]answer, len(batch))
	var requests errgroup.Group
	requests.SetLimit(p.config.Concurrency)
	for i, message := range batch {
		requests.Go(func() error {
			answers[i] = p.post(ctx, message)
			return nil
		})
	}
	_ = requests.Wait() // None returns an error.
	taken := false
	for _, each := range answers {
		taken = taken || each.err == nil
	}
	results := make([]error, len(batch))
	for i, each := range answers {
		results[i] = each.result(taken)
	}
	return results
}

// answer is what came of a request.
type answer struct {
	status int // 0: none came.
	after  time.Duration
	err    error // nil: it was taken.
}

func (a answer) result(othersTaken bool) error {
	switch {
	case a.err == nil:
		return nil
	case a.status == http.StatusRequestTimeout, a.status == http.StatusTooEarly, a.status == http.StatusTooManyRequests,
		a.status == http.StatusUnauthorized, a.status == http.StatusProxyAuthRequired:
		return relay.NotNow(a.after, a.err)
	case a.status >= 400 && a.status < 500:
		return relay.Refused(a.err)
	case othersTaken && a.after == 0 && (a.status == http.StatusInternalServerError || a.status == http.StatusNotImplemented):
		return a.err
	default:
		return relay.NotNow(a.after, a.err)
	}
}

func (p *Publisher) post(ctx context.Context, message relay.Message) answer {
	request, err := p.request(ctx, message)
	if err != nil {
		return answer{status: http.StatusBadRequest, err: err}
	}
	response, err := p.config.Client.Do(request)
	if err != nil {
		var sending *url.Error
		if errors.As(err, &sending) {
			err = sending.Err // Without the address, which may hold a secret.
		}
		return answer{err: fmt.Errorf("post to %s: %w", request.URL.Host, err)}
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, answerShown)) // What can be had of it.
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10)) // So that the connection can be used again.
	if response.StatusCode >= 200 && response.StatusCode < 300 {
		return answer{status: response.StatusCode}
	}
	err = fmt.Errorf("%s answers %s", request.URL.Host, response.Status)
	if words := strings.TrimSpace(string(body)); words != "" {
		err = fmt.Errorf("%w: %s", err, words)
	}
	if response.StatusCode == http.StatusRequestEntityTooLarge {
		err = fmt.Errorf("%w (the message has %d bytes)", err, request.ContentLength)
	}
	return answer{status: response.StatusCode, after: retryAfter(response.Header.Get("Retry-After"), time.Now()), err: err}
}

func (p *Publisher) request(ctx context.Context, message relay.Message) (*http.Request, error) {
	body := []byte(message.Payload)
	if p.config.Structured {
		document, err := message.Structured()
		if err != nil {
			return nil, err
		}
		body = document
	}
	address := relay.Expand(p.config.URL, message, url.PathEscape)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the address with the message's queue, kind and key in it is no URL")
	}
	for name, values := range p.config.Header {
		request.Header[name] = values
	}
	request.Header.Set("Idempotency-Key", message.ID)
	if p.config.Structured {
		request.Header.Set("Content-Type", "application/cloudevents+json; charset=UTF-8")
		for _, header := range message.Trace() {
			request.Header.Set(header.Name, relay.Escape(header.Value))
		}
		return request, nil
	}
	request.Header.Set("Content-Type", relay.ContentType)
	for _, header := range message.BinaryHeaders("ce-", relay.Escape) {
		request.Header.Set(header.Name, header.Value)
	}
	return request, nil
}

// retryAfter reads how long to wait: a number of seconds, or a moment. 0: it does not say.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(value); err == nil {
		return time.Duration(max(0, min(seconds, 86400))) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// Ready returns nil: only a message can tell whether the destination takes messages.
func (p *Publisher) Ready(context.Context) error { return nil }

// Close lets go of connections that are idle.
func (p *Publisher) Close() error {
	p.config.Client.CloseIdleConnections()
	return nil
}
