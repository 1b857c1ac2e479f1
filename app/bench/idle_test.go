package bench

import (
	"slices"
	"testing"
	"time"
)

func TestQuietFigures_AreOfASecond(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_700_000_000, 0)
	before := quiet{at: at, sent: sent{Statements: 1000, Trips: 500, Transactions: 400}}
	after := quiet{at: at.Add(10 * time.Second), sent: sent{Statements: 1000 + 320, Trips: 500 + 160, Pings: 16, Transactions: 400 + 80}}
	want := []Figure{{"workers", "", 16}, {"statements", "/s and worker", 2}, {"pings", "/s and worker", 0.1}, {"round trips", "/s and worker", 1}, {"transactions", "/s and worker", 0.5}}
	if got := quietFigures(before, after); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
