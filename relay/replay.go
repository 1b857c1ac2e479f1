package relay

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-pg/holdfast/domain"
)

// Replayed is how far a replay has come.
type Replayed struct {
	Published int64         `json:"published"`
	Refused   int64         `json:"refused"`
	LastSeq   int64         `json:"last_seq"` // Of the message that was published last.
	LastID    *domain.JobID `json:"last_id"`
}

// Replay publishes completed jobs again, under their own ids, until a filter finds no more: those
// of a key in order, each after the one before it was taken. It changes no job. While the
// destination is away it waits. A message that is refused, or fails five times, is counted and left
// out. progress is called after each batch. Run by two at once, or beside a relay, it does no
// harm but for the order between what each of them publishes.
func Replay(ctx context.Context, db domain.DBTX, filter domain.PublishedFilter, publisher Publisher, config Config, progress func(Replayed)) (done Replayed, err error) {
	config.Queue = filter.Queue
	r := &replay{config: config.WithDefaults(), publisher: publisher, progress: progress}
	err = domain.WalkPublished(ctx, db, filter, true, func(jobs []domain.PublishedJob) (bool, error) {
		messages := make([]Message, len(jobs))
		for i, job := range jobs {
			messages[i] = Message{
				ID: job.ID.String(), Source: r.config.Source, Queue: filter.Queue, Kind: job.Kind, Key: job.PartitionKey, Seq: job.Seq,
				Created: job.CreatedAt, Headers: readHeaders(job.Headers), Payload: job.Payload,
			}
		}
		for len(messages) > 0 {
			var batch []Message
			batch, messages = takeBatch(messages, r.config.Batch)
			if err := r.publish(ctx, batch); err != nil {
				return false, err
			}
		}
		return true, nil
	})
	return r.done, err
}

type replay struct {
	config    Config
	publisher Publisher
	progress  func(Replayed)
	done      Replayed
}

// takeBatch takes the first message of each key, up to so many; the rest keeps its order.
func takeBatch(messages []Message, most int) (batch, rest []Message) {
	taken := map[string]bool{}
	for _, message := range messages {
		if len(batch) < most && !taken[message.Key] {
			batch = append(batch, message)
		} else {
			rest = append(rest, message)
		}
		taken[message.Key] = true // Those behind one that waits wait too.
	}
	return batch, rest
}

// replayTries is how often a message is published that fails by itself.
const replayTries = 5

// publish publishes a batch until each of its messages is taken or left out.
func (r *replay) publish(ctx context.Context, batch []Message) error {
	for rest, tries := firstRest, 1; ; rest = min(2*rest, longestRest) {
		results, err := r.send(ctx, batch)
		if err != nil {
			return err
		}
		after, away := awayOf(results)
		batch = r.sort(batch, results, tries == replayTries)
		r.progress(r.done)
		if len(batch) == 0 {
			return nil
		}
		if away == nil {
			tries++
		} else {
			r.config.Worker.Logger.Warn("the destination takes nothing at the moment, waiting", "messages", len(batch), "error", away)
		}
		if !pause(ctx, min(max(rest, after), longestAsked)) {
			return ctx.Err()
		}
	}
}

func (r *replay) send(ctx context.Context, batch []Message) ([]error, error) {
	call, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	results := r.publisher.Publish(call, batch)
	if len(results) != len(batch) {
		return nil, fmt.Errorf("the publisher gave %d results for %d messages", len(results), len(batch))
	}
	return results, nil
}

// sort counts what was taken and what is left out, and returns what is to be published again.
// last: what has failed by itself is left out too.
func (r *replay) sort(batch []Message, results []error, last bool) (again []Message) {
	for i, result := range results {
		var refused *RefusedError
		var notNow *NotNowError
		switch {
		case result == nil:
			r.taken(batch[i])
		case errors.As(result, &refused), last && !errors.As(result, &notNow):
			r.done.Refused++
			r.config.Worker.Logger.Warn("a message is refused and left out", "job_id", batch[i].ID, "error", result)
		default:
			again = append(again, batch[i])
		}
	}
	return again
}

func (r *replay) taken(message Message) {
	r.done.Published++
	r.done.LastSeq = message.Seq
	if id, err := domain.ParseJobID(message.ID); err == nil {
		r.done.LastID = &id
	}
}
