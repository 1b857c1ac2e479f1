package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/db/bench"
	"github.com/holdfast-pg/holdfast/domain/plans"
)

// support asks how long a person waits for what the commands ask, when there is little and when
// there is much. The tables are vacuumed, as autovacuum does, and nothing else runs.
var support = scenario{
	name:  "support",
	about: "the server's time for what a person asks, and the shared buffers that it touches",
	trials: func(o Options) []trial {
		var trials []trial
		for _, size := range bySize(o, []int{2_000}, []int{100_000, 1_000_000}) {
			inbox, archive := size, 9*size
			trials = append(trials, trial{
				name:  commas(strconv.Itoa(inbox+archive)) + " jobs",
				needs: needs{producers: fillers, jobs: (inbox + archive) / 2, payload: o.Payload},
				run: func(ctx context.Context, s *stage) ([]Figure, error) {
					if err := s.fillEveryState(ctx, inbox, archive); err != nil {
						return nil, err
					}
					return s.ask(ctx, bySize(o, 5, 100))
				},
			})
		}
		return trials
	},
}

// fillEveryState fills the inbox with jobs in every state, and the archive.
func (s *stage) fillEveryState(ctx context.Context, inbox, archive int) error {
	payload := s.jobs.batch(1, s.server.started)[0].Args.(holdfast.RawArgs).Payload
	s.server.progress.begin(s.title+": fill", inbox+archive)
	done := 0
	for _, part := range []struct {
		jobs int
		add  func(ctx context.Context, first, n int32) (int64, error)
	}{
		{inbox, func(ctx context.Context, first, n int32) (int64, error) {
			return s.queries.FillEveryState(ctx, s.pool, bench.FillEveryStateParams{Payload: payload, FromNumber: first, ToNumber: first + n - 1})
		}},
		{archive, func(ctx context.Context, _, n int32) (int64, error) {
			return s.queries.FillArchive(ctx, s.pool, bench.FillArchiveParams{Payload: payload, Jobs: n})
		}},
	} {
		group, groupCtx := errgroup.WithContext(ctx)
		group.SetLimit(fillers)
		for first := 1; first <= part.jobs && groupCtx.Err() == nil; first += fillBatch {
			n := min(fillBatch, part.jobs-first+1)
			group.Go(func() error {
				added, err := part.add(groupCtx, int32(first), int32(n))
				if err == nil && added != int64(n) {
					err = fmt.Errorf("%d of %d jobs were added", added, n)
				}
				return err
			})
			done += n
			s.server.progress.at(done)
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return errors.Join(s.queries.VacuumJobs(ctx, s.pool), s.server.checkpoint(ctx))
}

// ask has the server explain each statement while it runs, so many times after once that does
// not count.
func (s *stage) ask(ctx context.Context, times int) ([]Figure, error) {
	statements := plans.Support()
	s.server.progress.begin(s.title+": ask", len(statements))
	var figures []Figure
	for i, statement := range statements {
		var taken []float64
		var buffers int64
		for range times + 1 {
			measured, err := s.explainAside(ctx, statement)
			if err != nil {
				return nil, err
			}
			taken = append(taken, float64(measured.Total())/float64(time.Millisecond))
			buffers = max(buffers, measured.Buffers)
		}
		taken = taken[1:]
		slices.Sort(taken)
		figures = append(figures,
			Figure{statement.Name + " p50", "ms", percentile(taken, 50)},
			Figure{statement.Name + " p99", "ms", percentile(taken, 99)},
			Figure{statement.Name + " buffers", "", float64(buffers)},
		)
		s.server.progress.at(i + 1)
	}
	return figures, nil
}

// explainAside runs a statement that only reads, and takes its settings back.
func (s *stage) explainAside(ctx context.Context, statement plans.Statement) (measured plans.Measurement, err error) {
	tx, err := s.pool.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return measured, err
	}
	measured, err = plans.Measure(ctx, tx, statement, 1)
	return measured, errors.Join(err, tx.Rollback(ctx))
}
