package demo

import (
	"context"
	"fmt"
)

// facts are what the demo counts while it happens.
type facts struct {
	orders     int // Orders placed.
	placed     int // Enqueues that added a job.
	duplicates int // Enqueues that found the job.
	killed     int // Workers killed.
	paused     int // Workers paused, in one job each.
	lost       int // Jobs that killed workers held, read from the inbox, or had lost before; and those of the paused.
}

// row compares one expected number with the one found.
type row struct {
	what            string
	expected, found int
}

// judge prints the table and tells whether it holds.
func (s *show) judge(ctx context.Context) error {
	jobs, err := s.queries.CountJobs(ctx, s.pool, []string{s.queue, s.labels})
	if err != nil {
		return err
	}
	receipts, err := s.queries.CountReceipts(ctx, s.pool)
	if err != nil {
		return err
	}
	labels, err := s.queries.CountCurrentLabels(ctx, s.pool, s.labels)
	if err != nil {
		return err
	}
	crashed, reclaimed := 0, s.reclaimedFrom(s.paused.by)
	for _, process := range s.workers {
		if process.exitErr != nil {
			crashed++
			reclaimed += s.reclaimedFrom(process)
		}
	}
	rows := []row{
		{"jobs enqueued", s.facts.orders, int(jobs.Enqueued)},
		{"duplicates refused", s.facts.orders, s.facts.duplicates},
		{"workers crashed", s.facts.killed, crashed},
		{"workers paused", s.facts.paused, s.steps.count(s.paused.Token, stepAwake)},
		{"jobs reclaimed", s.facts.lost, reclaimed},
		{"stale writes refused", s.facts.paused, s.steps.count(s.paused.Token, stepRefused)},
		{"stale completions refused", s.facts.paused, s.steps.count(s.paused.Token, stepCompletionRefused)},
		{"jobs completed", s.facts.orders, int(jobs.Completed)},
		{"receipts sent", s.facts.orders - s.facts.paused, int(receipts.Sent)},
		{"receipts sent again", 0, int(receipts.Repeated)},
		{"labels up to date", s.facts.paused, int(labels)},
	}
	return s.print(rows)
}

func (s *show) print(rows []row) error {
	fmt.Fprintf(s.Out, "\n  %-26s %9s %7s\n", "", "expected", "found")
	broken := 0
	for _, row := range rows {
		verdict := s.story.paint(green, "ok")
		if row.found != row.expected {
			verdict = s.story.paint(red, "differs")
			broken++
		}
		fmt.Fprintf(s.Out, "  %-26s %9d %7d  %s\n", row.what, row.expected, row.found, verdict)
	}
	fmt.Fprintln(s.Out)
	if s.WithoutMark {
		fmt.Fprintln(s.Out, "A killed worker leaves jobs that are done but not completed, and they run again. With the mark,\n"+
			"written in the transaction that sends the receipt, the second run finds that it was sent:\n"+
			"`holdfast demo` shows it.")
	}
	if s.WithoutFence {
		fmt.Fprintln(s.Out, "A paused worker does not know that its lease has ended and its job has run again. With the guard, in\n"+
			"the transaction that prints the label, the order refuses a lower token after a higher one:\n"+
			"`holdfast demo` shows it.")
	}
	if broken > 0 {
		return fmt.Errorf("%w: %d of %d rows differ", ErrBroken, broken, len(rows))
	}
	fmt.Fprintln(s.Out, "Every receipt was sent, and only once, and the label is right, through two crashes and a pause.")
	return nil
}
