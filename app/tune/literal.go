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
	changed := r.Changes(w)
	if len(changed) == 0 {
		return "holdfast.Config{} // The defaults suit this work.\n"
	}
	var text strings.Builder
	fmt.Fprintln(&text, "holdfast.Config{")
	for _, change := range changed {
		value := reflect.ValueOf(r.Worker).FieldByName(change.Setting).Interface()
		fmt.Fprintf(&text, "%s: %s, // %s.\n", change.Setting, goValue(value), change.Rule)
	}
	fmt.Fprintln(&text, "}")
	formatted, err := format.Source([]byte(text.String()))
	if err != nil {
		return text.String() // As it is: it would not be Go, which TestLiteral_Compiles rules out.
	}
	return string(formatted)
}

// Changes are the fields of worker.Config for which a default does not do. What follows by itself
// from one of them is left out.
func (r Recommendation) Changes(w Workload) (changes []Setting) {
	following := Current{Values: Defaults(w.Cores), From: map[string]string{}}
	for _, field := range []string{"Lease", "Heartbeat"} {
		following.Set(field, r.Worker, "")
	}
	defaults := settings(w, r, Current{Values: Defaults(w.Cores)})
	for i, setting := range settings(w, r, following) {
		_, leads := followers[setting.Setting]
		if leads {
			setting = defaults[i]
		}
		if setting.Of == ofWorker && setting.Change() {
			changes = append(changes, setting)
		}
	}
	return changes
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
