package integration

import "testing"

func TestBench_PayloadEnqueueLatencyAndIdleCountWhatTheySay(t *testing.T) {
	t.Parallel()
	d := isolate(t, "bench", "payload", "enqueue", "latency", "idle", "--size", "small", "--jobs", "10", "--duration", "1s", "-o", "json")
	d.start(t).ends(t, 0)
	trials := benchFigures(t, d)
	wantFigure(t, trials["payload 128 B"], "log", 300, 1<<20)
	wantFigure(t, trials["payload 16 KB"], "log", 16<<10, 1<<20) // The archive has a copy of its own.
	for _, name := range []string{"enqueue sets", "enqueue sets with keys"} {
		wantFigure(t, trials[name], "jobs", 10, 10)
		wantFigure(t, trials[name], "rate", 1, 1e6)
	}
	rows := trials["enqueue one by one"]
	wantFigure(t, rows, "enqueue / INSERT", 0.999*rows["rate"]/rows["rate of a bare INSERT"], 1.001*rows["rate"]/rows["rate of a bare INSERT"])
	for _, name := range []string{"latency notified", "latency polling"} {
		wantFigure(t, trials[name], "jobs", 10, 10)
		wantFigure(t, trials[name], "from commit p50", 0.001, 10_000)
		wantFigure(t, trials[name], "from call p50", trials[name]["from commit p50"], 10_000)
	}
	wantFigure(t, trials["latency polling"], "idle poll", 1500, 1500)
	idle := trials["idle notified"]
	wantFigure(t, idle, "workers", 16, 16)
	wantFigure(t, idle, "statements", 0.01, 100)
	wantFigure(t, idle, "round trips", 0.01, 100)
	wantFigure(t, idle, "connections", 2, 5)
	d.leavesNothing(t)
}
