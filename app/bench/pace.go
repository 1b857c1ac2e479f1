package bench

import "time"

// pace offers jobs evenly, at a rate.
type pace struct {
	perSecond float64
	given     int
}

// due is how many jobs to offer so that the rate holds, given the time since the beginning:
// after a stall all those that were missed. They count as offered.
func (p *pace) due(elapsed time.Duration) int {
	n := int(p.perSecond*elapsed.Seconds()) - p.given
	if n <= 0 {
		return 0
	}
	p.given += n
	return n
}
