package relay

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"
)

// errorShown bounds the error in the registry, in bytes: it is written at every heartbeat.
const errorShown = 300

// Status is how a relay is doing, counted since it started. It stands in the registry, at most a
// heartbeat old.
type Status struct {
	Destination string     `json:"destination"`
	Away        bool       `json:"away"`                    // The destination takes nothing, and no job is claimed.
	AwaySince   *time.Time `json:"away_since,omitempty"`    // By the relay's clock, as all times here.
	Published   int64      `json:"published"`               // Messages that were taken.
	Refused     int64      `json:"refused"`                 // Refused for good.
	PutOff      int64      `json:"put_off"`                 // Given back because the destination was away.
	Failed      int64      `json:"failed"`                  // Attempts that failed otherwise.
	LastError   string     `json:"last_error,omitempty"`    // Of any of these.
	LastErrorAt *time.Time `json:"last_error_at,omitempty"` // When it was.
}

// said is what a relay adds to the registry.
type said struct {
	Relay Status `json:"relay"`
}

// ReadStatus reads what a worker says beside its facts. False: it is no relay.
func ReadStatus(more json.RawMessage) (status Status, isRelay bool) {
	var read struct {
		Relay *Status `json:"relay"`
	}
	if json.Unmarshal(more, &read) != nil || read.Relay == nil {
		return Status{}, false
	}
	return *read.Relay, true
}

// Status returns how the relay is doing.
func (r *Relay) Status() Status {
	r.status.mutex.Lock()
	defer r.status.mutex.Unlock()
	now := r.status.Status
	now.Destination = r.config.Destination
	return now
}

type status struct {
	mutex sync.Mutex
	Status
}

// note counts the results of a batch. away: the destination is.
func (s *status) note(results []error) (after time.Duration, away error) {
	after, away = awayOf(results)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, result := range results {
		var refused *RefusedError
		var notNow *NotNowError
		switch {
		case result == nil:
			s.Published++
			continue
		case errors.As(result, &refused):
			s.Refused++
		case errors.As(result, &notNow):
			s.PutOff++
		default:
			s.Failed++
		}
		s.setError(result)
	}
	if away != nil && !s.Away {
		now := time.Now()
		s.Away, s.AwaySince = true, &now
	}
	return after, away
}

func (s *status) setError(err error) {
	text := err.Error()
	now := time.Now()
	s.LastError, s.LastErrorAt = strings.ToValidUTF8(text[:min(len(text), errorShown)], ""), &now
}

// failed keeps the error of a destination that is asked whether it is back.
func (s *status) failed(err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.setError(err)
}

// taken is how many messages the destination has taken.
func (s *status) taken() int64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.Published
}

func (s *status) opened() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.Away, s.AwaySince = false, nil
}
