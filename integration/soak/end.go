package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

// settlePatience is how long the jobs have to end when nobody does harm any more.
const settlePatience = 3 * time.Minute

// settle stops the producers and waits until every job has ended. Jobs that wait for another
// attempt are made due, and every job that died is put back once.
func (s *soak) settle(ctx context.Context) error {
	fmt.Fprintln(s.out, "soak: no more harm, waiting for every job to end")
	for _, m := range s.producers {
		if err := m.drain(ctx, drainPatience); err != nil {
			return err
		}
	}
	operator, err := history.Create(s.dir, history.ClientFile("operator"))
	if err != nil {
		return err
	}
	defer operator.Close()
	if err := s.untilEnded(ctx); err != nil {
		return err
	}
	if err := s.redrive(ctx, &diary{file: operator, process: "operator"}); err != nil {
		return err
	}
	return s.untilEnded(ctx)
}

func (s *soak) untilEnded(ctx context.Context) error {
	deadline := time.Now().Add(settlePatience)
	for {
		var left int
		_, err := s.pool.Exec(ctx, "UPDATE holdfast.inbox SET available_at = now() WHERE status = 'pending' AND available_at > now()")
		if err == nil {
			err = s.pool.QueryRow(ctx, "SELECT count(*) FROM holdfast.inbox WHERE status IN ('pending', 'processing')").Scan(&left)
		}
		switch {
		case err == nil && left == 0:
			return nil
		case time.Now().After(deadline):
			return errors.Join(err, fmt.Errorf("broke Comes back: %d jobs have not ended %s after the last harm", left, settlePatience))
		case !pause(ctx, 200*time.Millisecond):
			return context.Cause(ctx)
		}
	}
}

// redrive puts jobs that died back, as an operator does who has mended the cause.
func (s *soak) redrive(ctx context.Context, diary *diary) error {
	if _, err := s.pool.Exec(ctx, "INSERT INTO soak.mended DEFAULT VALUES"); err != nil {
		return err
	}
	rows, err := s.pool.Query(ctx, "SELECT id::text FROM holdfast.inbox WHERE status IN ('failed', 'dead_letter') ORDER BY id")
	if err != nil {
		return err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, text := range ids {
		id, err := domain.ParseJobID(text)
		if err != nil {
			return err
		}
		begin := time.Now()
		put, err := domain.Redrive(ctx, s.pool, id)
		outcome, _ := outcomeOf(err)
		if err != nil || len(put) != 1 {
			return errors.Join(err, fmt.Errorf("job %s was not put back", text))
		}
		diary.write(history.Op{Op: history.OpRedrive, Begin: begin, Outcome: outcome, Job: text})
	}
	return nil
}

// writeEnd writes what is left in the tables, and what the sink saw.
func (s *soak) writeEnd(ctx context.Context) error {
	err := dump(ctx, s.dir, history.FinalFile, s.jobs, `
		SELECT 'inbox', id::text, queue, partition_key, COALESCE(idempotency_key, ''), kind, ordered, seq, status::text, attempts, max_attempts, lease_generation
		FROM holdfast.inbox
		UNION ALL
		SELECT 'inbox_archive', id::text, queue, partition_key, COALESCE(idempotency_key, ''), kind, ordered, seq, 'completed', attempts, max_attempts, lease_generation
		FROM holdfast.inbox_archive`,
		func(rows pgx.Rows) (row history.Row, err error) {
			return row, rows.Scan(&row.Place, &row.ID, &row.Queue, &row.PartitionKey, &row.IdempotencyKey, &row.Kind, &row.Ordered,
				&row.Seq, &row.Status, &row.Attempts, &row.MaxAttempts, &row.Generation)
		})
	if err != nil {
		return err
	}
	return dump(ctx, s.dir, history.SinkFile, s.sink, "SELECT resource, token, job::text, worker, accepted FROM effects ORDER BY seq",
		func(rows pgx.Rows) (effect history.Effect, err error) {
			return effect, rows.Scan(&effect.Resource, &effect.Token, &effect.Job, &effect.WorkerID, &effect.Accepted)
		})
}

// dump writes the rows of a query into a file of the run.
func dump[T any](ctx context.Context, dir, name, url, sql string, scan func(pgx.Rows) (T, error)) (err error) {
	file, err := history.Create(dir, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		row, err := scan(rows)
		if err != nil {
			return err
		}
		if err := file.Write(row); err != nil {
			return err
		}
	}
	return rows.Err()
}
