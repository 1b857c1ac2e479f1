package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// The paths of a worker's probes: 200 says yes and 503 no, with a JSON document.
const (
	PathLive  = "/livez"
	PathReady = "/readyz"
)

// mostProbe bounds what is read of an answer.
const mostProbe = 64 << 10

// ErrUnhealthy says that a worker answered, and not that it is well.
var ErrUnhealthy = errors.New("the worker says that it is not well")

// ErrInvalidAddress says that a probe's address cannot be read.
var ErrInvalidAddress = errors.New("the address must have the form http://host:port")

// ProbeAnswer is what a worker's probe says.
type ProbeAnswer struct {
	Address string          `json:"address"`
	Body    json.RawMessage `json:"answer"`
}

// ProbeLive asks the worker that serves its probes at the address whether it is alive. Errors:
// ErrInvalidAddress, ErrUnhealthy, or that nobody answers in time.
func ProbeLive(ctx context.Context, address string, patience time.Duration) (ProbeAnswer, error) {
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.User != nil {
		return ProbeAnswer{}, ErrInvalidAddress
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %s", patience))
	defer cancel()
	asked := base.JoinPath(PathLive).String()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, asked, nil)
	if err != nil {
		return ProbeAnswer{}, fmt.Errorf("ask %s: %w", asked, err)
	}
	response, err := http.DefaultClient.Do(request)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err != nil {
		return ProbeAnswer{}, fmt.Errorf("ask %s: %w", asked, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, mostProbe))
	if err != nil {
		return ProbeAnswer{}, fmt.Errorf("read the answer of %s: %w", asked, err)
	}
	if response.StatusCode != http.StatusOK {
		return ProbeAnswer{}, fmt.Errorf("ask %s: %w: %s: %s", asked, ErrUnhealthy, response.Status, strings.TrimSpace(string(body)))
	}
	if !json.Valid(body) {
		return ProbeAnswer{}, fmt.Errorf("ask %s: the answer is no JSON: something else than a worker listens there", asked)
	}
	return ProbeAnswer{Address: asked, Body: body}, nil
}
