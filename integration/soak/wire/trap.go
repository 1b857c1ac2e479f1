package wire

import "slices"

// Moment is when a trap cuts the connection.
type Moment string

// The two sides of a commit, which look the same to the client.
const (
	// Unsent is before the server gets the end of the request: nothing of it is committed.
	Unsent Moment = "before the commit was sent"
	// Unanswered is after the server has answered, which the client never learns.
	Unanswered Moment = "after the commit was answered"
)

// trap cuts the connection of the next request that runs a statement.
type trap struct {
	moment    Moment
	statement string
	sprung    chan struct{}
}

// CutAt cuts the connection of the next request that runs the statement, and closes the
// returned channel when it has done so. A statement is known by its query name, one without
// such a name by its first word in small letters: "CompleteJobs", "commit". A trap takes the
// place of one that has not sprung.
func (l *Line) CutAt(moment Moment, statement string) (sprung <-chan struct{}) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.trap = &trap{moment: moment, statement: statement, sprung: make(chan struct{})}
	return l.trap.sprung
}

// Disarm takes away the trap.
func (l *Line) Disarm() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.trap = nil
}

// spring returns the trap if a request of these statements springs it.
func (l *Line) spring(statements []string) *trap {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.trap == nil || !slices.Contains(statements, l.trap.statement) {
		return nil
	}
	sprung := l.trap
	l.trap = nil
	return sprung
}
