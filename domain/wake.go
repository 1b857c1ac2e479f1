package domain

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-pg/holdfast/gen"
)

// probePatience is how long a probe may take to arrive.
const probePatience = 2 * time.Second

// listenCheck is how often a listener that hears nothing asks whether it is still connected.
const listenCheck = 30 * time.Second

// Ring says where a job has been enqueued. It is a hint: it may get lost, come late or twice.
type Ring struct {
	Queue  string
	Bucket int // -1: several.
}

// Arm says that the worker wants to be woken by enqueues to the queues. An enqueue whose
// transaction was open meanwhile did not see it, so the worker must look again soon.
func (q *Queue) Arm(ctx context.Context, workerID string, queues []string) error {
	if _, err := q.queries.ArmWake(ctx, q.work, gen.ArmWakeParams{WorkerID: workerID, Queues: queues}); err != nil {
		return fmt.Errorf("ask to be woken: %w", explain(err))
	}
	return nil
}

// Disarm says that the worker need not be woken, because it looks for work all the time.
func (q *Queue) Disarm(ctx context.Context, workerID string, queues []string) error {
	if _, err := q.queries.DisarmWake(ctx, q.work, gen.DisarmWakeParams{WorkerID: workerID, Queues: queues}); err != nil {
		return fmt.Errorf("ask not to be woken: %w", explain(err))
	}
	return nil
}

// LookRequest says where an idle worker looks.
type LookRequest struct {
	Queue   string
	Own     []int         // The worker's own buckets.
	Others  []int         // The other ones.
	Lanes   bool          // The queue's jobs are claimed lane by lane.
	DueFor  time.Duration // Only jobs that have been due for so long are strays or misfits.
	Horizon time.Duration // How far ahead to look.
}

// Outlook is what an idle worker sees.
type Outlook struct {
	// NextDue is how long it takes until a job of the worker's own buckets is due: zero when
	// one is, the horizon when none is due within it. Jobs of lanes count as due.
	NextDue time.Duration

	// Strays says that a job of another worker's buckets waits to be claimed.
	Strays bool

	// Misfits says that a job waits to be claimed in the other way than the queue's.
	Misfits bool
}

// Look tells what there is to claim, without claiming. Of a paused queue nothing is seen.
func (q *Queue) Look(ctx context.Context, request LookRequest) (Outlook, error) {
	row, err := q.queries.LookAround(ctx, q.work, gen.LookAroundParams{
		Queue:        request.Queue,
		OwnBuckets:   int32s(request.Own),
		OtherBuckets: int32s(request.Others),
		Lanes:        request.Lanes,
		DueFor:       request.DueFor,
		Horizon:      request.Horizon,
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return Outlook{NextDue: request.Horizon}, nil
	}
	if err != nil {
		return Outlook{}, fmt.Errorf("look around in queue %q: %w", request.Queue, explain(err))
	}
	return Outlook{NextDue: row.NextDue, Strays: row.Strays, Misfits: row.Misfits}, nil
}

// Listen passes rings on until the context ends or its connection is lost, which it returns
// as an error. It calls ready once it knows that notifications arrive: a probe that was sent
// the way that enqueues go has come back. ErrNoNotifications: it has not.
func (q *Queue) Listen(ctx context.Context, ready func(), hear func(Ring)) error {
	conn, err := pgx.ConnectConfig(ctx, q.listen)
	if err != nil {
		return fmt.Errorf("connect to listen: %w", explain(err))
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing)
	}()
	if err := q.queries.SubscribeToRings(ctx, conn); err != nil {
		return fmt.Errorf("listen: %w", explain(err))
	}
	if err := q.queries.SubscribeToProbes(ctx, conn); err != nil {
		return fmt.Errorf("listen: %w", explain(err))
	}
	if err := q.probe(ctx, conn); err != nil {
		return err
	}
	ready()
	for {
		notification, err := awaitNotification(ctx, conn)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		if ring, ok := parseRing(notification); ok {
			hear(ring)
		}
	}
}

// probe sends a nonce and waits for it.
func (q *Queue) probe(ctx context.Context, conn *pgx.Conn) error {
	nonce := rand.Text()
	if err := q.queries.SendProbe(ctx, q.work, nonce); err != nil {
		return fmt.Errorf("send a probe: %w", explain(err))
	}
	patient, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	for {
		notification, err := conn.WaitForNotification(patient)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case patient.Err() != nil:
			return ErrNoNotifications
		case err != nil:
			return fmt.Errorf("wait for the probe: %w", err)
		case notification.Payload == nonce:
			return nil
		}
	}
}

// awaitNotification waits for the next notification. Now and then it asks whether the
// connection still stands: a listener on a dead one would wait for ever.
func awaitNotification(ctx context.Context, conn *pgx.Conn) (*pgconn.Notification, error) {
	for {
		waiting, cancel := context.WithTimeout(ctx, listenCheck)
		notification, err := conn.WaitForNotification(waiting)
		quiet := waiting.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil || !quiet || conn.IsClosed() {
			return notification, err
		}
		asking, cancel := context.WithTimeout(ctx, probePatience)
		err = conn.Ping(asking)
		cancel()
		if err != nil {
			return nil, err
		}
	}
}

// parseRing reads "bucket queue", as an enqueue writes it.
func parseRing(notification *pgconn.Notification) (ring Ring, ok bool) {
	bucket, queue, found := strings.Cut(notification.Payload, " ")
	number, err := strconv.Atoi(bucket)
	if notification.Channel != "holdfast_wake" || !found || err != nil {
		return Ring{}, false
	}
	return Ring{Queue: queue, Bucket: number}, true
}
