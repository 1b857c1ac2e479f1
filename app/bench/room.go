package bench

import (
	"cmp"
	"context"
	"fmt"

	"github.com/shirou/gopsutil/v4/disk"
)

const (
	workerConnections = 6 + 1 + 1 // Its own, the one that listens, and the handlers' pool.
	benchConnections  = preloaders + 4
	mostWAL           = 10 << 30 // max_wal_size of the private server, with what comes on top.
)

// checkRoom tells in a sentence what the server lacks for a trial.
func (s *server) checkRoom(ctx context.Context, n needs) error {
	free, err := s.queries.CountFreeConnections(ctx, s.pool)
	if err != nil {
		return err
	}
	if wanted := n.connections(); int(free) < wanted {
		return fmt.Errorf("the server has %d free connections, and %d are needed: raise max_connections, or end sessions", free, wanted)
	}
	if s.private == nil {
		return nil // The disk of a server that is not ours cannot be seen from here.
	}
	folder, err := s.setting(ctx, "data_directory")
	if err != nil {
		return err
	}
	usage, err := disk.UsageWithContext(ctx, folder)
	if err != nil {
		return fmt.Errorf("look for free space in %s: %w", folder, err)
	}
	return n.checkDisk(usage.Free, folder)
}

func (n needs) connections() int {
	return n.workers*cmp.Or(n.each, workerConnections) + n.producers + benchConnections
}

// disk is about what a trial writes, in bytes: a row twice in the inbox and once in the
// archive with their indexes, and three to four times as much of log, up to its limit.
func (n needs) disk() uint64 {
	row := uint64(n.payload) + 500
	jobs := uint64(n.jobs)
	return 1<<28 + jobs*row*4 + min(jobs*row*8, mostWAL)
}

func (n needs) checkDisk(free uint64, folder string) error {
	if wanted := n.disk(); free < wanted {
		return fmt.Errorf("%s has %s free, and about %s are needed: ask for fewer --jobs or a shorter --duration, or point TMPDIR to a larger disk",
			folder, gigabytes(free), gigabytes(wanted))
	}
	return nil
}

func gigabytes(bytes uint64) string {
	return fmt.Sprintf("%.1f GB", float64(bytes)/(1<<30))
}
