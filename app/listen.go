package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// lastAnswers bounds how long the server waits, at its end, for answers that are under way.
const lastAnswers = time.Second

// listen takes an address for metrics and probes.
func listen(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	socket, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve metrics and probes: %w", err)
	}
	return socket, nil
}

// serve answers what comes to the socket, which it closes, until it is stopped.
func serve(socket net.Listener, routes http.Handler, log *slog.Logger) (stop func()) {
	server := &http.Server{
		Handler:           routes,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      scrapeTimeout + 5*time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(socket); !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics and probes are not served any more", "error", err)
		}
	}()
	log.Info("serving metrics and probes", "address", socket.Addr().String())
	return func() {
		ending, cancel := context.WithTimeout(context.Background(), lastAnswers)
		defer cancel()
		if server.Shutdown(ending) != nil {
			_ = server.Close()
		}
		<-ended
	}
}

// routes are what is served: numbers and states, and nothing of a job but its kind and queue.
func routes(metrics http.Handler, probes *probes) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET "+PathLive, func(w http.ResponseWriter, _ *http.Request) { answer(w, probes.live()) })
	mux.HandleFunc("GET "+PathReady, func(w http.ResponseWriter, r *http.Request) { answer(w, probes.ready(r.Context())) })
	return mux
}

func answer(w http.ResponseWriter, report ProbeReport) {
	body, _ := json.Marshal(report) // Booleans and texts: it cannot fail.
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !report.OK {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write(append(body, '\n')) // Whoever asked may be gone.
}
