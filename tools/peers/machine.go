package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// machineFacts describe the machine. What /proc does not tell is left out.
type machineFacts struct {
	CPUs    int    `json:"cpus"`
	CPU     string `json:"cpu,omitempty"`
	Memory  string `json:"memory,omitempty"`
	System  string `json:"system"`
	Load    string `json:"load_average_at_start,omitempty"`
	Runtime string `json:"go"`
}

func describeMachine() machineFacts {
	facts := machineFacts{
		CPUs:    runtime.NumCPU(),
		CPU:     procField("/proc/cpuinfo", "model name"),
		Memory:  procField("/proc/meminfo", "MemTotal"), // In kB.
		System:  runtime.GOOS + "/" + runtime.GOARCH,
		Runtime: runtime.Version(),
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		facts.System += " " + strings.TrimSpace(string(release))
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		facts.Load, _, _ = strings.Cut(string(load), " ")
	}
	return facts
}

func (m machineFacts) String() string {
	return fmt.Sprintf("%d × %s, %s memory, %s, %s, load average %s at the start",
		m.CPUs, orUnknown(m.CPU), orUnknown(m.Memory), m.System, m.Runtime, orUnknown(m.Load))
}

func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

// procField returns the first value of a field in a file of lines "name: value".
func procField(file, field string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(content)) {
		name, value, found := strings.Cut(line, ":")
		if found && strings.TrimSpace(name) == field {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
