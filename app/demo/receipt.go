package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/app"
	"github.com/holdfast-pg/holdfast/app/orders"
	"github.com/holdfast-pg/holdfast/db/demo"
	"github.com/holdfast-pg/holdfast/domain"
)

// What ends the line that a handler prints when its receipt was sent before.
const (
	alreadySent = " was sent before" // It finds the mark.
	sentAgain   = " was sent again"  // There is no mark to find.
)

// What handlers print when they stand where the demo kills their worker.
func afterCommit(order int64) string  { return fmt.Sprintf("order:%d committed", order) }
func beforeCommit(order int64) string { return fmt.Sprintf("order:%d midway", order) }

// HandleReceipt is the demo's handler, a program that `holdfast work --exec` runs: it reads
// the payload from stdin, and sends the receipt in the transaction that marks it handled.
func HandleReceipt(ctx context.Context, stdin io.Reader, stdout io.Writer, withoutMark bool) error {
	var receipt orders.SendReceipt
	if err := json.NewDecoder(stdin).Decode(&receipt); err != nil {
		return fmt.Errorf("read the payload: %w", err)
	}
	id, err := domain.ParseJobID(os.Getenv("HOLDFAST_JOB_ID"))
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, os.Getenv(app.EnvDatabaseURL))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	tx, err := conn.Begin(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if !withoutMark {
		first, err := domain.MarkHandled(ctx, tx, id, receipt.Kind())
		if err != nil {
			return err
		}
		if !first {
			fmt.Fprintf(stdout, "order:%d%s\n", receipt.OrderID, alreadySent)
			return nil
		}
	}
	again, err := demo.New().HasReceipt(ctx, tx, receipt.OrderID)
	if err != nil {
		return err
	}
	if _, err := demo.New().SendReceipt(ctx, tx, receipt.OrderID); err != nil {
		return err
	}
	// The first attempt meets with this crash, and its order is alone by then.
	if receipt.OrderID == midwayOrder && os.Getenv("HOLDFAST_ATTEMPT") == "1" {
		return awaitDeath(ctx, stdout, beforeCommit(midwayOrder))
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if again {
		fmt.Fprintf(stdout, "order:%d%s\n", receipt.OrderID, sentAgain)
	}
	// Whoever is the first to send it: on a busy machine an attempt may lose its lease before.
	if receipt.OrderID == orders.Sent && !again {
		return awaitDeath(ctx, stdout, afterCommit(orders.Sent))
	}
	return nil
}

// awaitDeath says where the handler stands and waits for the worker's end, which is its own:
// Linux kills it then, elsewhere it has to see that it got another parent.
func awaitDeath(ctx context.Context, stdout io.Writer, point string) error {
	worker := os.Getppid()
	fmt.Fprintln(stdout, point)
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%s: nobody killed the worker", point))
	defer cancel()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for os.Getppid() == worker {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-look.C:
		}
	}
	return fmt.Errorf("%s: the worker is gone", point)
}
