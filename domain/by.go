package domain

import (
	"fmt"
	"os"
	"path/filepath"
	"unicode/utf8"
)

// By is who orders something, and why. Its methods are what a person does to jobs, queues and
// workers. Each leaves an event of what it changed, in the statement that changes it, and none
// of what it did not.
type By struct {
	// Actor is a person, such as anna@ops-1, or a program, 1 to 200 characters.
	Actor string

	// Reason is for those who read it later, 1,000 characters at most. Default: none.
	Reason string
}

// ThisProgram is By when nobody says who: the program that runs and its host.
func ThisProgram() By {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return By{Actor: ActorOn(filepath.Base(os.Args[0]), host)}
}

// ActorOn is an actor of the name on a host, such as anna@ops-1, cut to what fits.
func ActorOn(name, host string) string {
	actor := []rune(cleanErrorText(name + "@" + host))
	return string(actor[:min(nameLimit, len(actor))])
}

// Check returns By as it can be stored. InvalidError: it cannot.
func (by By) Check() (By, error) {
	if err := checkName("actor", by.Actor); err != nil {
		return by, err
	}
	by.Reason = cleanErrorText(by.Reason)
	if length := utf8.RuneCountInString(by.Reason); length > reasonLimit {
		return by, &InvalidError{Field: "reason", Reason: fmt.Sprintf("has %d characters, %d at most", length, reasonLimit)}
	}
	return by, nil
}
