package worker

import (
	"context"
	"sync"
)

// Gate holds claims back while something that the handlers need is away, such as the broker
// that a relay publishes to. While it is closed a worker claims nothing; what it holds goes on.
// Its zero value is open.
type Gate struct {
	mutex  sync.Mutex
	opened chan struct{} // Closed when the gate opens; nil while it is open.
}

// Close lets no claim begin.
func (g *Gate) Close() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
}

// Open lets claims begin again, the first one at once.
func (g *Gate) Open() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}

// IsClosed tells whether claims are held back. A gate that is not there is open.
func (g *Gate) IsClosed() bool {
	return g.shut() != nil
}

// shut returns a channel that is closed when the gate opens; nil: it is open.
func (g *Gate) shut() <-chan struct{} {
	if g == nil {
		return nil
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.opened
}

// awaitGate waits until claims may begin. Meanwhile producers need not ring, and what cannot
// start soon is given back.
func (s *session) awaitGate(ctx context.Context, p *pace) bool {
	opened := s.Gate.shut()
	if opened == nil {
		return ctx.Err() == nil
	}
	s.log.Info("the gate is closed: no job is claimed until it opens")
	s.claimPulse.rest()
	if p.armed {
		s.disarm(ctx, p)
	}
	for open := false; !open && ctx.Err() == nil; {
		stale, stop := s.staleTimer()
		select {
		case <-ctx.Done():
		case <-stale:
			s.giveBackStale()
		case <-opened:
			open = true
		}
		stop()
	}
	p.wait, p.busySince = s.ActivePoll, s.Clock.Now()
	s.tick(&s.claimPulse)
	return ctx.Err() == nil
}
