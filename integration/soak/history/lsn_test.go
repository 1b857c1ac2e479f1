package history_test

import (
	"testing"

	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

func TestParseLSN_FollowsTheOrderOfTheLog(t *testing.T) {
	t.Parallel()
	var last uint64
	for _, text := range []string{"0/9", "0/F1", "0/FFFFFFFF", "1/0", "10/0"} {
		got, err := history.ParseLSN(text)
		if err != nil || got <= last {
			t.Errorf("%s is %d (error %v), want more than %d", text, got, err, last)
		}
		last = got
	}
	if _, err := history.ParseLSN("nonsense"); err == nil {
		t.Error("nonsense was read")
	}
}
