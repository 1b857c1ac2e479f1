package worker_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
	"github.com/holdfast-pg/holdfast/worker"
)

func TestNew_RefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config   worker.Config
		handlers []worker.Handler
		want     string
	}{
		"no handler":              {want: "no handler"},
		"two handlers of a kind":  {handlers: []worker.Handler{returning(nil), returning(nil)}, want: `two handlers of kind "send"`},
		"a config that is broken": {config: worker.Config{Concurrency: -1}, handlers: []worker.Handler{returning(nil)}, want: "Concurrency"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := worker.New(model.New(model.Settings{}), test.config, test.handlers...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one about %s", err, test.want)
			}
		})
	}
}

func TestRun_SecondCallIsRefused(t *testing.T) {
	t.Parallel()
	created, err := worker.New(model.New(model.Settings{}), worker.Config{Logger: slog.New(slog.DiscardHandler)}, returning(nil))
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := created.Run(over); err != nil {
		t.Errorf("the first Run returned %v", err)
	}
	if err := created.Run(over); err == nil || !strings.Contains(err.Error(), "runs once") {
		t.Errorf("the second Run returned %v, want an error", err)
	}
}

func TestJoin_TemporaryErrorsAreTriedAgain(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"Open", "Join"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.config.Random = func() float64 { return 0 }
				w.spoil(method, fault{err: errCut, times: 9})
				id := w.enqueue(model.NewJob{})
				w.start(returning(nil))
				w.advance(time.Minute)
				wantWaits(t, w.calls(method), 100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000)
				w.wantJob(id, domain.StatusCompleted, 1)
				equal(t, "errors logged", w.log.count("level=ERROR", "cannot join", errCut.Error()), 9)
			})
		})
	}
}

// The first try has taken the id.
func TestJoin_LostReplyDoesNotKeepTheWorkerOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.spoil("Join", fault{err: errCut, lost: true})
		id := w.enqueue(model.NewJob{})
		w.start(returning(nil))
		w.advance(time.Second)
		w.wantWorking()
		w.wantJob(id, domain.StatusCompleted, 1)
	})
}

func TestJoin_PermanentErrorsAreReturned(t *testing.T) {
	t.Parallel()
	schema := &domain.SchemaError{Schema: 1, Binary: 6, Remedy: "migrate"}
	for name, test := range map[string]struct {
		method string
		err    error
	}{
		"no schema":       {"Open", domain.ErrNotMigrated},
		"another schema":  {"Open", schema},
		"the id is taken": {"Join", domain.ErrWorkerExists},
		"a queue's name":  {"Join", &domain.InvalidError{Field: "queue", Reason: "is empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.spoil(test.method, fault{err: test.err, times: always})
				w.start(returning(nil))
				if !w.hasReturned() || !errors.Is(w.err, test.err) {
					t.Errorf("Run returned %t with %v, want %v", w.hasReturned(), w.err, test.err)
				}
				equal(t, "claims", len(w.calls("Claim")), 0)
			})
		})
	}
}

func TestJoin_StoppedWorkerReturnsNil(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.spoil("Open", fault{err: errCut, times: always})
		w.start(returning(nil))
		w.advance(time.Minute)
		w.stop()
		w.advance(0)
		w.wantReturned()
	})
}

func TestJoin_RegistryLearnsWhoItIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Queues = []string{"mail", "print"}
		w.config.Version = "1.2.3"
		w.start(returning(nil))
		live, err := w.LiveWorkers(context.WithoutCancel(t.Context()), "print", time.Hour, 9)
		if err != nil || len(live) != 1 {
			t.Fatalf("%d workers are alive: %v", len(live), err)
		}
		equal(t, "id", live[0].ID, "w1")
		for _, fact := range []string{`"version":"1.2.3"`, `"host":`, `"pid":`, `"concurrency":8`} {
			if !strings.Contains(string(live[0].Metadata), fact) {
				t.Errorf("the metadata %s lack %s", live[0].Metadata, fact)
			}
		}
	})
}
