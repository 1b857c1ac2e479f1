package tune

import (
	"reflect"

	"github.com/holdfast-pg/holdfast/worker"
)

// Current are the settings as they stand, and where each comes from.
type Current struct {
	Values

	From map[string]string // By the name of the setting; what is missing is a default.
}

// FromDefault is where a value comes from that nobody has set.
const FromDefault = "default"

func (c Current) from(setting string) string {
	if from, known := c.From[setting]; known {
		return from
	}
	return FromDefault
}

// Set takes a field of a worker's configuration over from another one. Those that follow from it
// and are not set themselves follow.
func (c *Current) Set(field string, from worker.Config, source string) {
	target := reflect.ValueOf(&c.Worker).Elem()
	value := reflect.ValueOf(from).FieldByName(field)
	target.FieldByName(field).Set(value)
	c.From[field] = source
	for _, follower := range followers[field] {
		if _, known := c.From[follower]; !known {
			target.FieldByName(follower).SetZero()
		}
	}
	c.Worker = c.Worker.WithDefaults()
}

// followers are the settings whose default follows from another one.
var followers = map[string][]string{
	"Lease":     {"RenewEvery", "LeaseMargin"},
	"Heartbeat": {"WorkerTTL", "RingCache"},
}

// Report is the advice for a workload.
type Report struct {
	Workload  Workload   `json:"workload"`
	Settings  []Setting  `json:"settings"`
	Conflicts []Conflict `json:"conflicts"` // Of the current settings, with the work and with each other.
	Lacks     []Lack     `json:"lacks"`     // What no setting makes up for.
}

// Advise compares the settings as they stand with those that suit a workload, which Check
// accepts.
func Advise(w Workload, current Current) Report {
	r := Recommend(w)
	return Report{
		Workload: w, Settings: settings(w, r, current),
		Conflicts: append([]Conflict{}, w.Conflicts(current.Values)...), Lacks: append([]Lack{}, r.Lacks...),
	}
}
