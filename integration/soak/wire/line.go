// Package wire is a line to Postgres that can come to harm: it can be cut, also just before or
// just after the server is told to commit, slowed down, stalled in either direction, or closed
// to new connections. It follows the protocol as far as that needs.
package wire

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Line takes connections on an address of its own and passes them on to the server.
type Line struct {
	listener net.Listener
	server   string
	open     context.Context // Ends with the line.
	end      context.CancelFunc
	serving  sync.WaitGroup

	mutex   sync.Mutex
	links   map[*link]struct{}
	trap    *trap
	refuses bool
	delay   delay
	stalled map[Direction]chan struct{} // Closed when the direction is free again.
}

// Direction is one way on a line.
type Direction string

// The two ways.
const (
	ToServer Direction = "to the server"
	ToClient Direction = "to the client"
)

type delay struct{ least, spread time.Duration }

// Listen opens a line to the server at a TCP address, on a free port of this machine.
func Listen(server string) (*Line, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	line := &Line{listener: listener, server: server, links: map[*link]struct{}{}, stalled: map[Direction]chan struct{}{}}
	line.open, line.end = context.WithCancel(context.Background())
	line.serving.Go(line.accept)
	return line, nil
}

// Address is where clients connect to, as host:port.
func (l *Line) Address() string {
	return l.listener.Addr().String()
}

// Close cuts the line for good.
func (l *Line) Close() error {
	l.end()
	err := l.listener.Close()
	l.Refuse(true)
	l.Stall(ToServer, false)
	l.Stall(ToClient, false)
	l.Cut()
	l.serving.Wait()
	return err
}

// Cut breaks every connection at once, and returns how many there were.
func (l *Line) Cut() int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for link := range l.links {
		link.cut()
	}
	return len(l.links)
}

// Refuse ends new connections as soon as they are made, or takes them again.
func (l *Line) Refuse(refuses bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.refuses = refuses
}

// Delay holds back every piece that passes in either direction for least to least + spread.
func (l *Line) Delay(least, spread time.Duration) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.delay = delay{least, spread}
}

// Stall keeps everything in one direction back, without a word to either side, until it is
// called again with false; then what was kept back passes.
func (l *Line) Stall(direction Direction, stalls bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	free, stalled := l.stalled[direction]
	if stalls == stalled {
		return
	}
	if stalls {
		l.stalled[direction] = make(chan struct{})
		return
	}
	close(free)
	delete(l.stalled, direction)
}

func (l *Line) accept() {
	for {
		client, err := l.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		l.serving.Go(func() { l.serve(client) })
	}
}

func (l *Line) serve(client net.Conn) {
	defer client.Close()
	if l.isRefusing() {
		return
	}
	var dialer net.Dialer
	server, err := dialer.DialContext(l.open, "tcp", l.server)
	if err != nil {
		return
	}
	defer server.Close()
	link := &link{line: l, client: client, server: server, statements: map[string]string{}}
	if !l.add(link) {
		return
	}
	defer l.remove(link)
	var both sync.WaitGroup
	both.Go(link.passRequests)
	both.Go(link.passAnswers)
	both.Wait()
}

func (l *Line) isRefusing() bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.refuses
}

func (l *Line) add(link *link) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.refuses {
		return false
	}
	l.links[link] = struct{}{}
	return true
}

func (l *Line) remove(link *link) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	delete(l.links, link)
}

// hold waits as long as the line's delay and stall say.
func (l *Line) hold(direction Direction) {
	l.mutex.Lock()
	wait, free := l.delay.least, l.stalled[direction]
	if l.delay.spread > 0 {
		wait += rand.N(l.delay.spread)
	}
	l.mutex.Unlock()
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case <-late.C:
	case <-l.open.Done():
	}
	if free != nil {
		<-free
	}
}
