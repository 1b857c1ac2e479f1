package holdfasttest

import (
	"slices"

	"github.com/jackc/pgx/v5"
)

// busyQueues lists the queues with a job of the kinds that a worker could claim, or that one
// whose id begins with the name has claimed. A job of an ordered queue can be claimed when it is
// the first of its key.
const busyQueues = `
	SELECT DISTINCT job.queue
	FROM holdfast.inbox AS job
	JOIN holdfast.queues AS queue ON queue.name = job.queue
	WHERE (job.status = 'processing' AND starts_with(job.claimed_by, $2))
		OR (
			job.status = 'pending'
			AND NOT queue.paused
			AND job.available_at <= now()
			AND ('' = ANY($1::text[]) OR job.kind = ANY($1::text[]))
			AND NOT (
				job.ordered
				AND EXISTS (
					SELECT FROM holdfast.inbox AS other
					WHERE other.ordered
						AND other.queue = job.queue
						AND other.partition_key = job.partition_key
						AND (other.status = 'processing' OR (other.status = 'pending' AND other.seq < job.seq))
				)
			)
		)
	ORDER BY job.queue`

// left tells whether there is something left to do in one of the queues; none stands for all.
func (d *drain) left(queues ...string) bool {
	d.tb.Helper()
	for {
		busy := d.busy()
		if len(queues) > 0 {
			busy = slices.DeleteFunc(busy, func(queue string) bool { return !slices.Contains(queues, queue) })
		}
		if len(busy) > 0 {
			return true
		}
		if !d.waiting || !d.endWaits() {
			return false
		}
	}
}

// busy lists the queues in which there is something to do.
func (d *drain) busy() []string {
	d.tb.Helper()
	rows, _ := d.pool.Query(d.tb.Context(), busyQueues, d.kinds, d.name)
	queues, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		d.tb.Fatalf("holdfasttest: drain: look for work: %v", err)
	}
	return queues
}

// endWaits makes the jobs of the kinds due that wait, and tells whether there were any.
func (d *drain) endWaits() bool {
	d.tb.Helper()
	tag, err := d.pool.Exec(d.tb.Context(), `
		UPDATE holdfast.inbox AS job
		SET available_at = now()
		FROM holdfast.queues AS queue
		WHERE job.status = 'pending'
			AND job.available_at > now()
			AND ('' = ANY($1::text[]) OR job.kind = ANY($1::text[]))
			AND queue.name = job.queue
			AND NOT queue.paused`, d.kinds)
	if err != nil {
		d.tb.Fatalf("holdfasttest: drain: end waits: %v", err)
	}
	return tag.RowsAffected() > 0
}
