package domain

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// DefaultQueue is the queue of jobs that name none. It always exists.
const DefaultQueue = "default"

// Limits, which the schema's CHECKs hold too.
const (
	nameLimit        = 200       // characters of a key, a name or a resource
	payloadLimit     = 256 << 10 // bytes
	payloadAdvice    = 2 << 10   // bytes; larger payloads get a warning
	headersLimit     = 8 << 10   // bytes
	errorTextLimit   = 8 << 10   // bytes
	reasonLimit      = 1000      // characters of what a person says
	maxAttemptsLimit = 1_000_000
)

// What an installation and a payload have at most, for whoever plans one.
const (
	DefaultBuckets = 1024
	MostBuckets    = 16_384 // An id has 14 bits for its bucket.
	PayloadLimit   = payloadLimit
)

// checkName checks a key or a name that becomes a text column.
func checkName(field, name string) error {
	switch length := utf8.RuneCountInString(name); {
	case name == "":
		return &InvalidError{Field: field, Reason: "is empty"}
	case length > nameLimit:
		return &InvalidError{Field: field, Reason: fmt.Sprintf("has %d characters, %d at most", length, nameLimit)}
	case !utf8.ValidString(name) || strings.ContainsRune(name, 0):
		return &InvalidError{Field: field, Reason: "is not valid UTF-8 without NUL, and Postgres stores no other text"}
	}
	return nil
}

// checkJSON checks a document that becomes a jsonb column.
func checkJSON(field string, document json.RawMessage, limit int) error {
	if len(document) > limit {
		return &InvalidError{Field: field, Reason: fmt.Sprintf("has %d bytes, %d at most", len(document), limit)}
	}
	if hasEscapedNUL(document) {
		return &InvalidError{Field: field, Reason: `holds \u0000, which Postgres cannot store`}
	}
	return nil
}

// hasEscapedNUL looks for \u0000 whose backslash is not itself escaped.
func hasEscapedNUL(document []byte) bool {
	for i := 0; i+1 < len(document); i++ {
		if document[i] != '\\' {
			continue
		}
		if strings.HasPrefix(string(document[i+1:min(i+6, len(document))]), "u0000") {
			return true
		}
		i++
	}
	return false
}

// cleanErrorText makes an error's text fit for last_error: valid UTF-8, no NUL, 8 KB.
func cleanErrorText(text string) string {
	if len(text) > errorTextLimit {
		text = text[:errorTextLimit]
	}
	// Cutting may split a character, and each stray byte grows to a replacement of three.
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")
	for len(text) > errorTextLimit {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}
