package bench

import (
	"cmp"
	"context"
)

// scenario is one question that the bench answers. It is a file with a variable of this type,
// and a word in the list of bench.go.
type scenario struct {
	name   string // What a person types.
	about  string // What is measured, in one line.
	trials func(o Options) []trial
}

// trial is one run of a scenario. It has a database of its own, migrated and empty, which the
// stage stands for: the trial fills it (setQueue, preload), has workers work (workOff; or hire,
// measure, awaitDone, stop and end, one by one) and checks what became of the jobs
// (checkArchived). It returns its figures, and an error if one of them cannot be trusted. What
// it leaves running is ended, and its database dropped. The trials of a scenario are the
// columns of its table.
type trial struct {
	name  string
	needs needs
	run   func(ctx context.Context, s *stage) ([]Figure, error)
}

// needs are what the server must have before the trial starts.
type needs struct {
	workers   int // Worker processes at once.
	each      int // Connections of each; 0: those of a worker with the default settings.
	producers int // Connections of the bench that enqueue.
	jobs      int // Enqueued in all, about.
	payload   int // Bytes of each.
}

// bySize is what a scenario does without a word from the person: little or much.
func bySize[T any](o Options, small, full T) T {
	if o.Size == SizeSmall {
		return small
	}
	return full
}

// jobs is how many jobs the person wants, else the scenario.
func (o Options) jobs(small, full int) int {
	return cmp.Or(o.Jobs, bySize(o, small, full))
}

// fast are the settings of a worker of short jobs: the defaults, but for the slots.
func (o Options) fast() workerSettings {
	return workerSettings{Concurrency: o.Concurrency}
}
