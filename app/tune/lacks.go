package tune

import (
	"fmt"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

// Lack is what is missing for the work to be done, whatever the settings.
type Lack struct {
	Of    string `json:"of"`      // slots, cores, connections, buckets or payload.
	By    int    `json:"missing"` // How many.
	What  string `json:"what"`    // The sum that does not come out.
	Needs string `json:"needs"`   // What would do.
}

// lacks are what the workload is missing with what is recommended.
func (w Workload) lacks(c worker.Config) (lacks []Lack) {
	for _, lack := range []Lack{w.lackOfTime(c), w.lackOfConnections(c), w.lackOfBuckets(c), w.lackOfRoom()} {
		if lack.By > 0 {
			lacks = append(lacks, lack)
		}
	}
	return lacks
}

// lackOfTime is more handler time than there are slots, or processors, to spend it in.
func (w Workload) lackOfTime(c worker.Config) Lack {
	of, each := "slots", c.Concurrency
	if w.Compute && w.Cores <= each {
		of, each = "cores", w.Cores
	}
	there := w.Workers * each
	return Lack{
		Of: of, By: ceil(w.busy()) - there,
		What: fmt.Sprintf("%s, but %s × %d %s = %d: %d %s are missing",
			w.handlerTime(), counted(w.Workers, "process"), each, of, there, ceil(w.busy())-there, of),
		Needs: fmt.Sprintf("%s of %d %s, to be busy for %d %% of the time", counted(ceil(w.busy()/load/float64(each)), "process"), each, of, int(100*load)),
	}
}

func (w Workload) handlerTime() string {
	busy := number(w.busy())
	if busy != "1" {
		busy += " handlers at once"
	} else {
		busy += " handler at once"
	}
	return fmt.Sprintf("%s/s × %s on average = %s", number(w.Rate), short(w.mean()), busy)
}

func (w Workload) lackOfConnections(c worker.Config) Lack {
	need := w.connections(c)
	return Lack{
		Of: "connections", By: need - w.Connections,
		What: fmt.Sprintf("%s × %s = %d connections, but there are %d: %d are missing",
			counted(w.Workers, "process"), w.connectionsEach(c), need, w.Connections, need-w.Connections),
		Needs: fmt.Sprintf("%d connections, fewer processes, or handlers that hold fewer", need),
	}
}

// connectionsEach is the sum for one process.
func (w Workload) connectionsEach(c worker.Config) string {
	return fmt.Sprintf("(%d + 1 to listen + %d held × %d slots)", c.Connections, w.Held, c.Concurrency)
}

func (w Workload) lackOfBuckets(c worker.Config) Lack {
	need := bucketsEach * w.Workers
	return Lack{
		Of: "buckets", By: need - c.Buckets,
		What: fmt.Sprintf("%d × %s = %d buckets, but an installation has %d at most: %d are missing",
			bucketsEach, counted(w.Workers, "process"), need, domain.MostBuckets, need-c.Buckets),
		Needs: fmt.Sprintf("%s at most, with more slots each", counted(domain.MostBuckets/bucketsEach, "process")),
	}
}

func (w Workload) lackOfRoom() Lack {
	over := w.Payload - domain.PayloadLimit
	return Lack{
		Of: "payload", By: over,
		What:  fmt.Sprintf("a payload of %s, but %s is the limit: %d bytes are too much", size(w.Payload), size(domain.PayloadLimit), over),
		Needs: "the body elsewhere, and a pointer to it in the payload",
	}
}
