package relay

import (
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pg/holdfast/worker"
)

func TestReplay_TakesTheFirstMessageOfEachKey(t *testing.T) {
	t.Parallel()
	rest := []Message{{ID: "1", Key: "a"}, {ID: "2", Key: "a"}, {ID: "3", Key: "b"}, {ID: "4", Key: "c"}, {ID: "5", Key: "b"}}
	var got []string
	for len(rest) > 0 {
		var batch []Message
		batch, rest = takeBatch(rest, 2)
		for _, message := range batch {
			got = append(got, message.ID)
		}
		got = append(got, "|")
	}
	equal(t, "batches", strings.Join(got, " "), "1 3 | 2 4 | 5 |")
}

func TestReplay_WaitsForADestinationThatIsAwayAndLeavesOutWhatItRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, tries := time.Now(), map[string]int{}
		b := &broker{refuse: func(message Message) error {
			tries[message.ID]++
			switch {
			case message.ID == "poison":
				return errors.New("500 Internal Server Error")
			case message.ID == "spam":
				return Refused(errors.New("no"))
			case time.Since(began) < time.Minute:
				return NotNow(0, errors.New("503 Service Unavailable"))
			}
			return nil
		}}
		config := Config{Worker: worker.Config{Logger: slog.New(slog.DiscardHandler)}}
		r := &replay{config: config.WithDefaults(), publisher: b, progress: func(Replayed) {}}
		var batch []Message
		for i, id := range []string{"1", "poison", "spam", "2"} {
			batch = append(batch, Message{ID: id, Key: strconv.Itoa(i), Seq: int64(i)})
		}
		if err := r.publish(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		equal(t, "published", r.done.Published, 2)
		equal(t, "refused", r.done.Refused, 2)
		equal(t, "tries of what is refused", tries["spam"], 1)
		if tries["1"] > 20 {
			t.Errorf("a destination that is away was asked %d times in a minute", tries["1"])
		}
	})
}
