package holdfast_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast"
)

// What stands between two marks stands in docs/fencing.md too; a test holds them together.

// begin

type RenderInvoice struct {
	Order int64 `json:"order"`
}

func (RenderInvoice) Kind() string { return "render_invoice" }

// SaveInvoice writes the text of an invoice, unless a later claim has been here.
func SaveInvoice(ctx context.Context, pool *pgxpool.Pool, job holdfast.Job[RenderInvoice], text string) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		resource := fmt.Sprintf("invoice:%d", job.Args.Order)
		if err := holdfast.Guard(ctx, tx, resource, job); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "UPDATE invoices SET text = $2 WHERE order_id = $1", job.Args.Order, text)
		return err
	})
}

// end

// begin

const createInvoices = `
	CREATE TABLE invoices (
		order_id bigint PRIMARY KEY,
		text text NOT NULL,
		fence bigint NOT NULL DEFAULT 0
	)`

// ReplaceInvoice writes the text of an invoice, unless its row has seen a higher token.
func ReplaceInvoice(ctx context.Context, db holdfast.DBTX, order int64, text string, fence int64) error {
	tag, err := db.Exec(ctx, `
		INSERT INTO invoices AS invoice (order_id, text, fence)
		VALUES ($1, $2, $3)
		ON CONFLICT (order_id) DO UPDATE
		SET
			text = EXCLUDED.text,
			fence = EXCLUDED.fence
		WHERE invoice.fence <= EXCLUDED.fence`, order, text, fence)
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("replace the invoice of order %d: %w", order, holdfast.ErrFenced)
	}
	return nil
}

// end

// begin

// PutInvoice sends the text of an invoice to a service that knows the rule.
func PutInvoice(ctx context.Context, url, text string, fence int64) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, url, strings.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Holdfast-Fence", strconv.FormatInt(fence, 10))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusNoContent:
		return nil
	case http.StatusConflict, http.StatusPreconditionFailed:
		return fmt.Errorf("put %s: %w", url, holdfast.ErrFenced)
	default:
		return fmt.Errorf("put %s: %s", url, response.Status)
	}
}

// end

// begin

// Document is a service of one document that never accepts a lower token after a higher one.
type Document struct {
	mutex sync.Mutex
	text  string
	fence int64
}

func (d *Document) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fence, err := strconv.ParseInt(r.Header.Get("Holdfast-Fence"), 10, 64)
	if err != nil {
		http.Error(w, "Holdfast-Fence must be a number", http.StatusPreconditionRequired)
		return
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	// Comparing and writing are one step.
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if fence < d.fence {
		http.Error(w, "a later claim has been here", http.StatusPreconditionFailed)
		return
	}
	d.text, d.fence = string(text), fence
	w.WriteHeader(http.StatusNoContent)
}

// end

// begin

// StoreInvoice replaces the object at url, unless that carries a higher token.
func StoreInvoice(ctx context.Context, url, text string, fence int64) error {
	// The token is part of the content: an ETag may be a hash of that alone.
	content := fmt.Sprintf("%s\nfence %d\n", text, fence)
	for {
		etag, seen, err := lookAtObject(ctx, url)
		if err != nil {
			return err
		}
		if seen > fence {
			return fmt.Errorf("store %s: %w", url, holdfast.ErrFenced)
		}
		stored, err := putObjectIf(ctx, url, etag, content, fence)
		if stored || err != nil {
			return err
		}
		// Somebody wrote between the look and the put: look again.
	}
}

// lookAtObject returns the ETag and the token of an object; "" and 0 when there is none.
func lookAtObject(ctx context.Context, url string) (etag string, fence int64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, url, http.NoBody)
	if err != nil {
		return "", 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", 0, err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
		fence, err = strconv.ParseInt(response.Header.Get("X-Amz-Meta-Fence"), 10, 64)
		return response.Header.Get("ETag"), fence, err
	case http.StatusNotFound:
		return "", 0, nil
	default:
		return "", 0, fmt.Errorf("look at %s: %s", url, response.Status)
	}
}

// putObjectIf writes an object if it still has the ETag, or still does not exist.
func putObjectIf(ctx context.Context, url, etag, content string, fence int64) (stored bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, url, strings.NewReader(content))
	if err != nil {
		return false, err
	}
	request.Header.Set("X-Amz-Meta-Fence", strconv.FormatInt(fence, 10))
	if etag == "" {
		request.Header.Set("If-None-Match", "*")
	} else {
		request.Header.Set("If-Match", etag)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
		return true, nil
	case http.StatusConflict, http.StatusPreconditionFailed, http.StatusNotFound:
		return false, nil
	default:
		return false, fmt.Errorf("put %s: %s", url, response.Status)
	}
}

// end

// A worker that lost its job writes late, and is refused.
func Example_fence() {
	service := httptest.NewServer(&Document{})
	defer service.Close()
	for _, fence := range []int64{41, 57, 57, 41} {
		err := PutInvoice(context.Background(), service.URL, "3 apples", fence)
		fmt.Println(fence, err == nil)
	}
	// Output:
	// 41 true
	// 57 true
	// 57 true
	// 41 false
}
