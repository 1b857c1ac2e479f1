package bench

import (
	"context"
	"fmt"
	"runtime"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/mem"
)

// Machine is where the bench and its workers run; a private server too.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory uint64 `json:"memory_bytes"`
	OS     string `json:"os"`
}

// thisMachine says what can be found out; what cannot stays empty.
func thisMachine(ctx context.Context) Machine {
	m := Machine{Cores: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH}
	if processors, err := cpu.InfoWithContext(ctx); err == nil && len(processors) > 0 {
		m.CPU = processors[0].ModelName
	}
	if memory, err := mem.VirtualMemoryWithContext(ctx); err == nil {
		m.Memory = memory.Total
	}
	if system, err := host.InfoWithContext(ctx); err == nil {
		m.OS = fmt.Sprintf("%s %s, kernel %s, %s", system.Platform, system.PlatformVersion, system.KernelVersion, m.OS)
	}
	return m
}

// Server is what the databases ran on.
type Server struct {
	Version  string    `json:"version"`
	Source   string    `json:"source"` // "private, from …", or "given".
	Settings []Setting `json:"settings"`
}

// Setting is one of the settings that decide about speed.
type Setting struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Changed bool   `json:"changed,omitempty"` // By the bench.
}

// settingsThatMatter are printed with every report.
var settingsThatMatter = []string{
	"autovacuum", "checkpoint_timeout", "data_checksums", "fsync", "full_page_writes", "io_method", "jit", "max_connections",
	"max_wal_size", "shared_buffers", "synchronous_commit", "wal_compression", "wal_level", "wal_sync_method", "work_mem",
}

func (s *server) describe(ctx context.Context) (Server, error) {
	version, err := s.setting(ctx, "server_version")
	if err != nil {
		return Server{}, err
	}
	described := Server{Version: "PostgreSQL " + version, Source: "given by --database-url"}
	if s.private != nil {
		described.Source = "private, from " + s.private.Source()
	}
	rows, err := s.queries.ListSettings(ctx, s.pool, settingsThatMatter)
	if err != nil {
		return Server{}, err
	}
	for _, row := range rows {
		_, changed := privateSettings[row.Name]
		described.Settings = append(described.Settings, Setting{Name: row.Name, Value: row.Value, Changed: changed && s.private != nil})
	}
	return described, nil
}

func (s *server) setting(ctx context.Context, name string) (string, error) {
	rows, err := s.queries.ListSettings(ctx, s.pool, []string{name})
	if err == nil && len(rows) != 1 {
		err = fmt.Errorf("the server does not tell its %s to this role", name)
	}
	if err != nil {
		return "", err
	}
	return rows[0].Value, nil
}
