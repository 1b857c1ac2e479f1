package demo

import "sync"

// step is something that a claim of a label's job came to: its handler said so on stdout, or
// its worker in the log.
type step struct {
	Name    stepName `json:"step"`
	Token   int64    `json:"token"`
	Address string   `json:"address"`

	by *workerProcess
}

type stepName string

const (
	stepReady             stepName = "ready"              // The first run has read the address and waits for its pause.
	stepAwake             stepName = "awake"              // It goes on after the pause.
	stepPrinted           stepName = "printed"            // The label is committed.
	stepRefused           stepName = "refused"            // The guard refused the token.
	stepCompleted         stepName = "completed"          // The database took the completion.
	stepCompletionRefused stepName = "completion refused" // The database refused it.
)

// steps gathers the steps of all claims.
type steps struct {
	mutex sync.Mutex
	taken []step
}

func (s *steps) add(taken step) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.taken = append(s.taken, taken)
}

// find returns the first step that matches.
func (s *steps) find(matches func(step) bool) (found step, exists bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, taken := range s.taken {
		if matches(taken) {
			return taken, true
		}
	}
	return step{}, false
}

// count counts how often the claim with the token came to a step.
func (s *steps) count(token int64, name stepName) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	n := 0
	for _, taken := range s.taken {
		if taken.Token == token && taken.Name == name {
			n++
		}
	}
	return n
}
