package wire

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgproto3"
)

// link is one connection over a line.
type link struct {
	line           *Line
	client, server net.Conn

	statements map[string]string    // What was prepared, by its name on this connection.
	lost       atomic.Pointer[trap] // The answer under way does not arrive.
}

func (l *link) cut() {
	_ = l.client.Close()
	_ = l.server.Close()
}

// What a frontend sends that ends a request.
const (
	queryFrame = 'Q'
	syncFrame  = 'S'
	flushFrame = 'H'
)

const readyFrame = 'Z' // What the server sends when it has answered a request.

// passRequests passes what the client sends on to the server, one request at a time.
func (l *link) passRequests() {
	defer l.cut()
	from := bufio.NewReaderSize(l.client, 1<<16)
	if !l.passStartup(from) {
		return
	}
	var request []byte
	var statements []string
	for {
		frame, err := readFrame(from)
		if err != nil {
			return
		}
		request = append(request, frame...)
		if statement, found := l.statement(frame); found {
			statements = append(statements, statement)
		}
		switch frame[0] {
		case 'P', 'B', 'D', 'E', 'C':
			continue // More of the request follows.
		case queryFrame, syncFrame:
			trap := l.line.spring(statements)
			if trap != nil && trap.moment == Unsent {
				close(trap.sprung)
				return
			}
			if trap != nil {
				l.lost.Store(trap)
			}
			statements = nil
		}
		l.line.hold(ToServer)
		if _, err := l.server.Write(request); err != nil {
			return
		}
		request = request[:0]
	}
}

// passStartup passes the messages that have no type. A request to encrypt is answered with a
// no, so that the rest can be read.
func (l *link) passStartup(from *bufio.Reader) bool {
	const cancelRequest, encryptTLS, encryptGSS = 80877102, 80877103, 80877104
	for {
		head, err := from.Peek(8)
		if err != nil {
			return false
		}
		message := make([]byte, binary.BigEndian.Uint32(head))
		if _, err := io.ReadFull(from, message); err != nil {
			return false
		}
		switch binary.BigEndian.Uint32(message[4:]) {
		case encryptTLS, encryptGSS:
			if _, err := l.client.Write([]byte{'N'}); err != nil {
				return false
			}
		case cancelRequest:
			_, _ = l.server.Write(message)
			return false
		default:
			_, err := l.server.Write(message)
			return err == nil
		}
	}
}

// passAnswers passes what the server sends on to the client, unless the answer is to be lost.
func (l *link) passAnswers() {
	defer l.cut()
	from := bufio.NewReaderSize(l.server, 1<<16)
	var answer []byte
	for {
		frame, err := readFrame(from)
		if err != nil {
			return
		}
		if trap := l.lost.Load(); trap != nil {
			if frame[0] == readyFrame {
				close(trap.sprung)
				return
			}
			continue
		}
		if answer = append(answer, frame...); from.Buffered() > 0 {
			continue
		}
		l.line.hold(ToClient)
		if _, err := l.client.Write(answer); err != nil {
			return
		}
		answer = answer[:0]
	}
}

// readFrame reads one message: a type, a length that counts itself, and the rest.
func readFrame(from *bufio.Reader) ([]byte, error) {
	head, err := from.Peek(5)
	if err != nil {
		return nil, err
	}
	frame := make([]byte, 1+binary.BigEndian.Uint32(head[1:]))
	_, err = io.ReadFull(from, frame)
	return frame, err
}

// statement tells which statement a message runs.
func (l *link) statement(frame []byte) (name string, found bool) {
	switch body := frame[5:]; frame[0] {
	case queryFrame:
		var query pgproto3.Query
		if query.Decode(body) == nil {
			return nameOf(query.String), true
		}
	case 'P':
		var parse pgproto3.Parse
		if parse.Decode(body) == nil {
			l.statements[parse.Name] = nameOf(parse.Query)
		}
	case 'B':
		var bind pgproto3.Bind
		if bind.Decode(body) == nil {
			return l.statements[bind.PreparedStatement], true
		}
	}
	return "", false
}

// nameOf returns the query name that stands before a statement, or its first word.
func nameOf(sql string) string {
	first, rest, _ := strings.Cut(strings.TrimSpace(sql), " ")
	if first == "--" {
		if named, found := strings.CutPrefix(rest, "name: "); found {
			name, _, _ := strings.Cut(named, " ")
			return name
		}
	}
	return strings.ToLower(strings.TrimRight(first, ";"))
}
