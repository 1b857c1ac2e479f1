package tune

import "time"

// Shape is a workload that stands for many.
type Shape struct {
	Name     string
	About    string
	Workload Workload
}

// Shapes are those that docs/tuning.md goes through and that the bench measures.
func Shapes() []Shape {
	usual := Workload{Workers: 1, Cores: 4, Payload: DefaultPayload, MostSlots: DefaultMostSlots, Connections: DefaultConnections}
	fast, http, reports := usual, usual, usual
	fast.Rate, fast.P50, fast.P99 = 5000, Seconds(2*time.Millisecond), Seconds(10*time.Millisecond)
	http.Rate, http.P50, http.P99 = 100, Seconds(300*time.Millisecond), Seconds(5*time.Second)
	http.Workers, http.Cores, http.Payload = 2, 2, 1024
	reports.Rate, reports.P50, reports.P99 = 0.05, Seconds(2*time.Minute), Seconds(15*time.Minute)
	reports.Workers, reports.Held = 3, 1
	return []Shape{
		{"fast", "fast jobs on one machine", fast},
		{"http", "slow HTTP calls", http},
		{"reports", "long reports", reports},
	}
}
