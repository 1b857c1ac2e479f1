package demo

import (
	"context"
	"fmt"

	"github.com/holdfast-pg/holdfast/app/orders"
	"github.com/holdfast-pg/holdfast/db/demo"
)

// pausePrinter pauses the worker that is about to print the label. What it has read of the
// order is then old, and it does not know.
func (s *show) pausePrinter(ctx context.Context) error {
	ready, err := s.awaitStep(ctx, "a worker to be about to print the label", func(taken step) bool { return taken.Name == stepReady })
	if err != nil {
		return err
	}
	if err := ready.by.pause(); err != nil {
		return err
	}
	s.paused = ready
	s.facts.paused++
	s.facts.lost++ // Whether its lease ends now or, on a busy machine, ended before.
	s.story.warn("%s holds order:%d under token %s and is paused before it prints the label (SIGSTOP)", ready.by.name, orders.Label, orders.Brief(ready.Token))
	if _, err := s.queries.ChangeAddress(ctx, s.pool, demo.ChangeAddressParams{ID: orders.Label, Address: orders.NewAddress}); err != nil {
		return err
	}
	s.story.tell("the customer of order:%d moves from %s to %s", orders.Label, orders.OldAddress, orders.NewAddress)
	return nil
}

// wakePrinter lets the paused worker go on, once another one has printed the label.
func (s *show) wakePrinter(ctx context.Context) error {
	held := s.paused.Token
	newer, err := s.awaitStep(ctx, "the label's job to run again", func(taken step) bool { return taken.Name == stepPrinted && taken.Token != held })
	if err != nil {
		return err
	}
	s.tellReclaims(true)
	s.story.tell("%s runs order:%d again under token %s and prints %s on the label", newer.by.name, orders.Label, orders.Brief(newer.Token), newer.Address)
	if err := s.paused.by.wake(); err != nil {
		return err
	}
	s.story.warn("%s wakes (SIGCONT), knows nothing of that, and prints %s under token %s", s.paused.by.name, s.paused.Address, orders.Brief(held))
	if err := s.tellWrite(ctx, newer); err != nil {
		return err
	}
	return s.tellCompletion(ctx)
}

// tellWrite tells what became of the paused worker's write.
func (s *show) tellWrite(ctx context.Context, newer step) error {
	answer, err := s.awaitAnswer(ctx, "write", stepPrinted, stepRefused)
	switch {
	case err != nil:
		return err
	case answer == stepRefused:
		s.story.tell("the write is refused: order:%d has seen token %s and takes no lower one", orders.Label, orders.Brief(newer.Token))
	default:
		s.story.warn("nothing compares the tokens: %s overwrites %s", s.paused.Address, newer.Address)
	}
	return nil
}

// tellCompletion tells what became of the paused worker's result.
func (s *show) tellCompletion(ctx context.Context) error {
	answer, err := s.awaitAnswer(ctx, "completion", stepCompleted, stepCompletionRefused)
	switch {
	case err != nil:
		return err
	case answer == stepCompletionRefused && s.WithoutFence:
		s.story.tell("the completion is refused all the same: %s has lost its lease", s.paused.by.name)
	case answer == stepCompletionRefused:
		s.story.tell("the completion is refused too: %s has lost its lease", s.paused.by.name)
	default:
		s.story.warn("the completion is accepted, though the lease of %s has ended", s.paused.by.name)
	}
	return nil
}

// awaitAnswer waits until the paused claim came to one of two ends, and returns which.
func (s *show) awaitAnswer(ctx context.Context, what string, accepted, refused stepName) (stepName, error) {
	answer, err := s.awaitStep(ctx, fmt.Sprintf("the %s of %s to be answered", what, s.paused.by.name), func(taken step) bool {
		return taken.Token == s.paused.Token && (taken.Name == accepted || taken.Name == refused)
	})
	return answer.Name, err
}

func (s *show) awaitStep(ctx context.Context, what string, matches func(step) bool) (found step, err error) {
	err = s.until(ctx, what, func() (exists bool, err error) {
		found, exists = s.steps.find(matches)
		return exists, err
	})
	return found, err
}
