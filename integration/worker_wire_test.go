package integration

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// wire is what the connections of a pool run through. A test can lose a reply on it, and cut
// it.
type wire struct {
	mutex sync.Mutex
	open  []net.Conn
	isCut bool
	marks [][]byte      // Parts of the request that is to be lost, or its reply; nil if none is.
	early bool          // The request itself is to be lost.
	lost  chan struct{} // Closed when it is lost.
}

// wired returns a pool on the database whose connections run through a wire.
func wired(t *testing.T, database *pgtest.Database) (*pgxpool.Pool, *wire) {
	t.Helper()
	w := &wire{}
	config := database.Pool.Config()
	config.ConnConfig.DialFunc = w.dial
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe // So a request holds the text of its statement.
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool, w
}

// loseReply loses the reply to the next request that holds all the parts, once the server
// has committed it, with the connection.
func (w *wire) loseReply(parts ...string) (lost <-chan struct{}) {
	return w.lose(false, parts)
}

// loseRequest loses the next request that holds all the parts before it reaches the server,
// with the connection.
func (w *wire) loseRequest(parts ...string) (lost <-chan struct{}) {
	return w.lose(true, parts)
}

func (w *wire) lose(early bool, parts []string) (lost <-chan struct{}) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.marks, w.early = nil, early
	for _, part := range parts {
		w.marks = append(w.marks, []byte(part))
	}
	w.lost = make(chan struct{})
	return w.lost
}

// cut swallows what is sent from here on, as a broken network does: nobody is told.
func (w *wire) cut() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.isCut = true
}

// mend ends the cut. The connections that saw it are broken.
func (w *wire) mend() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.isCut = false
	for _, conn := range w.open {
		_ = conn.Close()
	}
	w.open = nil
}

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.open = append(w.open, conn)
	return &wiredConn{Conn: conn, wire: w}, nil
}

// takes tells what becomes of a request: it is swallowed, or its reply is the one to be lost,
// or both when it is to be lost itself.
func (w *wire) takes(request []byte) (swallowed bool, lost chan struct{}) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.isCut || w.marks == nil {
		return w.isCut, nil
	}
	for _, mark := range w.marks {
		if !bytes.Contains(request, mark) {
			return false, nil
		}
	}
	w.marks = nil
	return w.early, w.lost
}

type wiredConn struct {
	net.Conn
	wire *wire
	lost atomic.Pointer[chan struct{}] // Of the reply that is next, if it is to be lost.
}

func (c *wiredConn) Write(request []byte) (int, error) {
	swallowed, lost := c.wire.takes(request)
	if swallowed && lost != nil {
		defer close(lost)
		return 0, errors.Join(io.ErrUnexpectedEOF, c.Close())
	}
	if swallowed {
		return len(request), nil
	}
	if lost != nil {
		c.lost.Store(&lost)
	}
	return c.Conn.Write(request)
}

func (c *wiredConn) Read(reply []byte) (int, error) {
	lost := c.lost.Swap(nil)
	if lost == nil {
		return c.Conn.Read(reply)
	}
	defer close(*lost)
	defer c.Close()
	// The server says that it is ready for the next query once the transaction has ended.
	ready := []byte("Z\x00\x00\x00\x05I")
	for tail := []byte{}; !bytes.HasSuffix(tail, ready); {
		n, err := c.Conn.Read(reply)
		if err != nil {
			return 0, err
		}
		tail = append(tail, reply[:n]...)
	}
	return 0, io.ErrUnexpectedEOF
}
