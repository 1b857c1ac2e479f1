package holdfasttest_test

import (
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/holdfasttest"
)

func TestRequireEnqueued_FindsTheJobInTheWordsOfTheEnqueue(t *testing.T) {
	t.Parallel()
	tx := begin(t, holdfasttest.NewPool(t))
	ada := sendReceipt{Email: "ada@example.com"}
	at := time.Now().Add(time.Hour)
	options := []holdfast.EnqueueOption{
		holdfast.OnQueue("mail"), holdfast.Key("order:9182"), holdfast.Once("receipt:9182"), holdfast.At(at),
		holdfast.MaxAttempts(3), holdfast.Headers(map[string]string{"trace": "1", "span": "2"}),
	}
	id := enqueue(t, tx, ada, options...)
	enqueue(t, tx, sendReceipt{Email: "bob@example.com"}, holdfast.In(time.Minute))
	if job := holdfasttest.RequireEnqueued(t, tx, ada, options...); job.ID != id || job.Args != ada || job.Queue != "mail" {
		t.Errorf("found %+v", job)
	}
	holdfasttest.RequireEnqueued(t, tx, ada)
	holdfasttest.RequireEnqueued(t, tx, ada, holdfast.Headers(map[string]string{"trace": "1"}))
	holdfasttest.RequireEnqueued(t, tx, sendReceipt{Email: "bob@example.com"}, holdfast.In(time.Minute))
	holdfasttest.RequireEnqueued(t, tx, holdfast.RawArgs{JobKind: "send_receipt", Payload: []byte(`{ "email":"ada@example.com" }`)})
	for what, option := range map[string]holdfast.EnqueueOption{
		"queue":           holdfast.OnQueue("default"),
		"key":             holdfast.Key("order:9183"),
		"idempotency key": holdfast.Once("receipt:9183"),
		"time":            holdfast.At(at.Add(time.Minute)),
		"delay":           holdfast.In(2 * time.Hour),
		"attempts":        holdfast.MaxAttempts(4),
		"headers":         holdfast.Headers(map[string]string{"trace": "2"}),
	} {
		wantFailure(t, func(tb *fake) { holdfasttest.RequireEnqueued(tb, tx, ada, option) },
			"there is none", `pending {"email":"ada@example.com"}, queue "mail", key "order:9182", idempotency key "receipt:9182", in 1h0m0s`,
			"; not the same "+what+"\n", "; not the same payload")
	}
}

func TestRequireEnqueued_OneJobIsMeant(t *testing.T) {
	t.Parallel()
	tx := begin(t, holdfasttest.NewPool(t))
	ada := sendReceipt{Email: "ada@example.com"}
	wantFailure(t, func(tb *fake) { holdfasttest.RequireEnqueued(tb, tx, ada) }, "no job of this kind, nor of any other", "cannot see")
	enqueue(t, tx, bookPayment{Payment: "pay_1"})
	wantFailure(t, func(tb *fake) { holdfasttest.RequireEnqueued(tb, tx, ada) }, "only of book_payment (1)")
	enqueue(t, tx, ada)
	enqueue(t, tx, ada)
	wantFailure(t, func(tb *fake) { holdfasttest.RequireEnqueued(tb, tx, ada) }, "there are 2", "Enqueued")
	wantFailure(t, func(tb *fake) { holdfasttest.RequireEnqueued(tb, tx, ada, holdfast.MaxAttempts(0)) }, "no job can be enqueued like that")
	if jobs := holdfasttest.Enqueued[sendReceipt](t, tx); len(jobs) != 2 || jobs[0].Seq >= jobs[1].Seq || jobs[0].Args != ada {
		t.Errorf("enqueued are %+v", jobs)
	}
}

func TestRequireNotEnqueued_FailsForAnyJobOfTheKind(t *testing.T) {
	t.Parallel()
	tx := begin(t, holdfasttest.NewPool(t))
	enqueue(t, tx, bookPayment{Payment: "pay_1"})
	holdfasttest.RequireNotEnqueued[sendReceipt](t, tx)
	enqueue(t, tx, sendReceipt{Email: "ada@example.com"}, holdfast.OnQueue("mail"))
	holdfasttest.RequireNotEnqueued[sendReceipt](t, tx, holdfast.OnQueue("default"))
	wantFailure(t, func(tb *fake) { holdfasttest.RequireNotEnqueued[sendReceipt](tb, tx) }, "ada@example.com")
	wantFailure(t, func(tb *fake) { holdfasttest.RequireNotEnqueued[holdfast.RawArgs](tb, tx) }, "names no kind")
}

func TestEnqueued_JobsThatHaveRunAreNotAmongThem(t *testing.T) {
	t.Parallel()
	tx := begin(t, holdfasttest.NewPool(t))
	wantEnding(t, holdfasttest.Run(t, t.Context(), tx, receipts(nil), sendReceipt{Email: "ada@example.com"}), holdfasttest.Completed)
	if jobs := holdfasttest.Enqueued[sendReceipt](t, tx); len(jobs) != 0 {
		t.Errorf("enqueued are %+v", jobs)
	}
	wantFailure(t, func(tb *fake) { holdfasttest.RequireEnqueued(tb, tx, sendReceipt{Email: "ada@example.com"}) }, "completed {", "not the same state")
}
