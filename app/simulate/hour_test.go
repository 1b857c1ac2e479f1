package simulate

import (
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain/model"
	"github.com/holdfast-pg/holdfast/worker"
)

// BenchmarkHour plays an hour of two workers and a job a second.
func BenchmarkHour(b *testing.B) {
	rest, undo := alone()
	defer undo()
	for b.Loop() {
		s := newStage(1, rest)
		s.handle("work", func(r *run) error {
			r.work(r.between(50*time.Millisecond, 150*time.Millisecond))
			return nil
		})
		s.start("w1", ordinary(4, worker.AffinityRing))
		s.start("w2", ordinary(4, worker.AffinityRing))
		for i := range 3600 {
			s.after(time.Duration(i)*time.Second, func() { s.enqueue(model.NewJob{Kind: "work", Key: strconv.Itoa(i % 100)}) })
		}
		if err := s.play(b.Context()); err != nil {
			b.Fatal(err)
		}
		if s.counts.Done != 3600 {
			b.Fatalf("%+v", s.counts)
		}
	}
}
