package app

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-pg/holdfast/telemetry"
)

const (
	// scrapesAtOnce is how many scrapes are answered at the same time; one more gets a 503.
	scrapesAtOnce = 3

	// scrapeTimeout bounds a scrape. For the database it waits two seconds at most.
	scrapeTimeout = 10 * time.Second
)

// Metrics are what the process measures, and their Prometheus endpoint.
type Metrics struct {
	*telemetry.Telemetry

	Endpoint http.Handler
	provider *sdkmetric.MeterProvider
}

// NewMetrics makes the metrics of a process of that version. Close ends them. tracers traces its
// handlers too; nil: they are not traced.
func NewMetrics(version string, tracers trace.TracerProvider) (*Metrics, error) {
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo())
	if err != nil {
		return nil, err
	}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(resource.NewSchemaless(
		attribute.String("service.name", "holdfast"), attribute.String("service.version", version),
	)))
	observed, err := telemetry.New(provider, tracers)
	if err != nil {
		return nil, errors.Join(err, provider.Shutdown(context.Background()))
	}
	endpoint := promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: scrapesAtOnce, Timeout: scrapeTimeout})
	return &Metrics{Telemetry: observed, Endpoint: endpoint, provider: provider}, nil
}

// Close ends the measurement.
func (m *Metrics) Close() {
	_ = m.provider.Shutdown(context.Background()) // It has nothing to send.
}
