package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // The driver that wait.ForSQL asks for as "pgx".
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/holdfast-pg/holdfast/internal/testdb"
)

// How long a run waits to learn that there is no container to be had: hardly when the
// embedded server will do, and for a slow registry when it will not.
const (
	optionalLimit = 2 * time.Second
	demandedLimit = time.Minute
)

const port = "5432/tcp"

// launchContainer runs the server in a container. It gives up within the limit when no
// Docker engine answers, or when the engine neither has the image nor learns from its
// registry that it can pull it.
func (s *server) launchContainer(ctx context.Context, image string, limit time.Duration) error {
	log.SetDefault(log.NewNoopLogger())
	if err := imageAvailable(ctx, image, limit); err != nil {
		return err
	}
	password := rand.Text()
	address := func(host string, port network.Port) string {
		return "postgres://postgres:" + password + "@" + net.JoinHostPort(host, port.Port()) + "/postgres?sslmode=disable"
	}
	arguments := []string{"postgres"}
	for _, name := range slices.Sorted(maps.Keys(testdb.Parameters)) {
		arguments = append(arguments, "-c", name+"="+testdb.Parameters[name])
	}
	container, err := testcontainers.Run(ctx, image,
		testcontainers.WithEnv(map[string]string{"POSTGRES_PASSWORD": password}),
		testcontainers.WithCmd(arguments...),
		testcontainers.WithExposedPorts(port),
		testcontainers.WithWaitStrategyAndDeadline(2*time.Minute, wait.ForSQL(port, "pgx", address)),
	)
	if container != nil {
		s.end = append(s.end, func() error { return testcontainers.TerminateContainer(container) })
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", image, err)
	}
	host, err := container.Host(ctx)
	if err != nil {
		return fmt.Errorf("find the container's address: %w", err)
	}
	mapped, err := container.MappedPort(ctx, port)
	if err != nil {
		return fmt.Errorf("find the container's port: %w", err)
	}
	s.url = address(host, mapped)
	return nil
}

// imageAvailable tells within the limit whether a container of the image can be run.
func imageAvailable(ctx context.Context, image string, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
	defer cancel()
	answer := make(chan error, 1)
	// The search for an engine takes no context: a host that swallows packets would hold it
	// for minutes. The goroutine ends with the search, or with the process.
	go func() { answer <- askEngine(ctx, image) }()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return fmt.Errorf("look for the image %s: %w", image, context.Cause(ctx))
	}
}

func askEngine(ctx context.Context, image string) (err error) {
	// testcontainers panics on some machines that have no engine.
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("no Docker engine: %v", reason)
		}
	}()
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return fmt.Errorf("no Docker engine: %w", err)
	}
	defer provider.Close()
	engine := provider.Client()
	if _, err := engine.ImageInspect(ctx, image); err == nil {
		return nil
	}
	if _, err := engine.DistributionInspect(ctx, image, client.DistributionInspectOptions{}); err != nil {
		return fmt.Errorf("the Docker engine has no image %s and cannot pull it: %w", image, err)
	}
	return nil
}
