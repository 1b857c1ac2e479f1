package tune

import (
	"fmt"
	"go/format"
	"reflect"
	"strings"
	"time"

	"github.com/holdfast-pg/holdfast/worker"
)

// GoLiteral is the recommended configuration in Go: a composite literal of holdfast.Config with
// the fields whose default does not do, and the rule beside each.
func (r Recommendation) GoLiteral(w Workload) string {
	changed := r.changes()
	if len(changed) == 0 {
		return "holdfast.Config{} // The defaults suit this work.\n"
	}
	var text strings.Builder
	fmt.Fprintln(&text, "holdfast.Config{")
	for _, knob := range changed {
		value := reflect.ValueOf(r.Worker).FieldByName(knob.name).Interface()
		fmt.Fprintf(&text, "%s: %s, // %s.\n", knob.name, goValue(value), knob.rule(w, r))
	}
	fmt.Fprintln(&text, "}")
	formatted, err := format.Source([]byte(text.String()))
	if err != nil {
		return text.String() // As it is: it would not be Go, which TestLiteral_Compiles rules out.
	}
	return string(formatted)
}

// changes are the fields of worker.Config for which a default does not do, once those that
// follow from others are left out.
func (r Recommendation) changes() (changed []knob) {
	followed := worker.Config{Lease: r.Worker.Lease, Heartbeat: r.Worker.Heartbeat, Buckets: Defaults(1).Worker.Buckets}.WithDefaults()
	others := Values{Worker: followed}
	for _, knob := range knobs {
		if knob.of != ofWorker {
			continue
		}
		if knob.name == "Lease" {
			others.Worker.Lease = worker.Config{}.WithDefaults().Lease
		}
		if knob.value(r.Values) != knob.value(others) {
			changed = append(changed, knob)
		}
	}
	return changed
}

func goValue(value any) string {
	switch value := value.(type) {
	case time.Duration:
		return goDuration(value)
	case worker.Affinity:
		if value == worker.AffinityNone {
			return "holdfast.AffinityNone"
		}
		return "holdfast.AffinityRing"
	default:
		return fmt.Sprint(value)
	}
}

// goDuration is a duration as a person writes it in Go.
func goDuration(d time.Duration) string {
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{time.Minute, "Minute"}, {time.Second, "Second"}, {time.Millisecond, "Millisecond"}} {
		if d%unit.size == 0 && d >= unit.size {
			return fmt.Sprintf("%d * time.%s", d/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%d * time.Nanosecond", d)
}
