package integration

import (
	"strings"
	"testing"

	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// Whether notifications arrive is known by trying, whatever the address looks like. Through a
// pooler in transaction mode they do not, unless DirectURL leads past it.
func TestWorker_SaysWhetherItListensOrPolls(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	pooled := database.URL != database.DirectURL
	for name, test := range map[string]struct {
		directURL string
		listens   bool
	}{
		"pool":   {"", !pooled},
		"direct": {database.DirectURL, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := quick()
			config.DirectURL = test.directURL
			run := startWorker(t, database, database.Pool, name, config, completing())
			want, says := "poll", 1
			if test.listens {
				want, says = "listen", 0
			}
			// Twice as long as a probe may take, and a heartbeat.
			pgtest.Eventually(t, patience, "the worker has had time to find out", func() bool {
				return pgtest.Value[int](t, database, `
					SELECT count(*) FROM holdfast.workers
					WHERE id = $1 AND metadata->>'wake' = $2 AND (last_seen_at > started_at + interval '5 seconds' OR $2 = 'listen')`, name+"-1", want) == 1
			})
			run.drain()
			if n := strings.Count(run.log.String(), "cannot listen for jobs, polling meanwhile"); n != says {
				t.Errorf("the worker says %d times that it polls, want %d:\n%s", n, says, run.log.String())
			}
			if says > 0 {
				wantWords(t, run.log.String(), "notifications do not arrive: DirectURL")
			}
		})
	}
}
