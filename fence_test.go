package holdfast_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// jobOf returns a claim's job with its payload.
func jobOf[T any](args T, fence int64) holdfast.Job[T] {
	return holdfast.Job[T]{ClaimedJob: domain.ClaimedJob{Claim: domain.Claim{Generation: fence}}, Args: args}
}

// fenced writes to one resource with a token.
type fenced func(text string, fence int64) error

// keepsTheRule expects that no lower token is accepted after a higher one.
func keepsTheRule(t *testing.T, write fenced, read func() string) {
	t.Helper()
	for _, step := range []struct {
		text  string
		fence int64
		want  error
	}{
		{"first", 41, nil},
		{"again by the same claim", 41, nil},
		{"later", 57, nil},
		{"stale", 41, holdfast.ErrFenced},
		{"stale, by a little", 56, holdfast.ErrFenced},
		{"later again", 57, nil},
	} {
		if err := write(step.text, step.fence); !errors.Is(err, step.want) {
			t.Fatalf("%q with token %d: %v, want %v", step.text, step.fence, err, step.want)
		}
		if text := read(); step.want == nil && text != step.text {
			t.Fatalf("the resource holds %q, want %q", text, step.text)
		}
	}
	if text := read(); text != "later again" {
		t.Fatalf("the resource holds %q", text)
	}
}

func TestFencedEffects_GuardInTheSameDatabase(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	database.Exec(t, createInvoices)
	database.Exec(t, "INSERT INTO invoices (order_id, text) VALUES (9182, '')")
	keepsTheRule(t, func(text string, fence int64) error {
		return SaveInvoice(t.Context(), database.Pool, jobOf(RenderInvoice{Order: 9182}, fence), text)
	}, func() string { return pgtest.Value[string](t, database, "SELECT text FROM invoices") })
}

func TestFencedEffects_ColumnOfATable(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	database.Exec(t, createInvoices)
	keepsTheRule(t, func(text string, fence int64) error {
		return ReplaceInvoice(t.Context(), database.Pool, 9182, text, fence)
	}, func() string {
		return pgtest.Value[string](t, database, "SELECT text FROM invoices WHERE order_id = 9182")
	})
	if err := ReplaceInvoice(t.Context(), database.Pool, 9183, "another", 1); err != nil {
		t.Fatalf("another row: %v", err)
	}
}

func TestFencedEffects_ColumnOfATableUnderRacingWriters(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	database.Exec(t, createInvoices)
	var writers sync.WaitGroup
	for fence := range int64(16) {
		writers.Go(func() {
			err := ReplaceInvoice(context.WithoutCancel(t.Context()), database.Pool, 9182, strconv.FormatInt(fence, 10), fence)
			if err != nil && !errors.Is(err, holdfast.ErrFenced) {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	if text := pgtest.Value[string](t, database, "SELECT text || ' ' || fence FROM invoices"); text != "15 15" {
		t.Errorf("the row holds %s, want what the highest token wrote", text)
	}
}

func TestFencedEffects_HTTPService(t *testing.T) {
	t.Parallel()
	var document Document
	service := httptest.NewServer(&document)
	defer service.Close()
	keepsTheRule(t, func(text string, fence int64) error { return PutInvoice(t.Context(), service.URL, text, fence) },
		func() string { return document.text })

	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, service.URL, strings.NewReader("without a token"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusPreconditionRequired || document.text != "later again" {
		t.Errorf("without a token the service says %s and holds %q", response.Status, document.text)
	}
}

func TestFencedEffects_ObjectStore(t *testing.T) {
	t.Parallel()
	objects := &bucket{}
	store := httptest.NewServer(objects)
	defer store.Close()
	keepsTheRule(t, func(text string, fence int64) error { return StoreInvoice(t.Context(), store.URL, text, fence) },
		func() string { text, _, _ := strings.Cut(objects.content, "\n"); return text })
}

// The later claim writes the same text between a stale worker's look and its put. A store
// that hashes the content alone would not tell the two objects apart.
func TestFencedEffects_ObjectStoreWithAWriteBetweenTheLookAndThePut(t *testing.T) {
	t.Parallel()
	objects := &bucket{}
	store := httptest.NewServer(objects)
	defer store.Close()
	if err := StoreInvoice(t.Context(), store.URL, "3 apples", 40); err != nil {
		t.Fatal(err)
	}
	objects.looked = sync.OnceFunc(func() {
		if err := StoreInvoice(context.WithoutCancel(t.Context()), store.URL, "3 apples", 57); err != nil {
			t.Error(err)
		}
	})
	if err := StoreInvoice(t.Context(), store.URL, "3 apples", 41); !errors.Is(err, holdfast.ErrFenced) {
		t.Errorf("the stale worker was told %v, want ErrFenced", err)
	}
	if objects.fence != "57" {
		t.Errorf("the object carries token %s, want 57", objects.fence)
	}
}

// bucket is an object store of one object, with the conditions of S3: its ETag is a hash of
// the content, which says nothing of the metadata.
type bucket struct {
	mutex   sync.Mutex
	exists  bool
	content string
	fence   string
	looked  func() // Called after a look, before its answer.
}

func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		b.head(w)
		if b.looked != nil {
			looked := b.looked
			b.looked = nil // The writes that it makes look too.
			looked()
		}
		return
	}
	b.put(w, r)
}

func (b *bucket) etag() string {
	return fmt.Sprintf("%q", fmt.Sprintf("%x", sha256.Sum256([]byte(b.content))))
}

func (b *bucket) head(w http.ResponseWriter) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if !b.exists {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("ETag", b.etag())
	w.Header().Set("X-Amz-Meta-Fence", b.fence)
}

func (b *bucket) put(w http.ResponseWriter, r *http.Request) {
	content, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	match := r.Header.Get("If-Match")
	if b.exists && r.Header.Get("If-None-Match") == "*" || match != "" && match != b.etag() {
		w.WriteHeader(http.StatusPreconditionFailed)
		return
	}
	b.exists, b.content, b.fence = true, string(content), r.Header.Get("X-Amz-Meta-Fence")
}
