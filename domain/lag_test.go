package domain

import (
	"testing"
	"time"
)

func TestLag_SaysHowOldTheAnswerIs(t *testing.T) {
	t.Parallel()
	for want, lag := range map[string]Lag{
		"a server that is no replica: it accepts writes":                                              {},
		"a replica that is 1.2 s behind":                                                              {Standby: true, Known: true, Age: 1234 * time.Millisecond},
		"a replica that shows all that has reached it; its latest change is 60.0 s old":               {Standby: true, Known: true, Replayed: true, Age: time.Minute},
		"a replica that shows all that has reached it":                                                {Standby: true, Replayed: true},
		"a replica that does not know how far it is behind: it has replayed nothing since it started": {Standby: true},
	} {
		if got := lag.String(); got != want {
			t.Errorf("%+v is %q, want %q", lag, got, want)
		}
	}
}
