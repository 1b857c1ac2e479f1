package simulate

import (
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

// Report is a simulation as it was played.
type Report struct {
	Preset string  `json:"preset"`
	Seed   int64   `json:"seed"`
	About  string  `json:"about"`
	Scenes []Scene `json:"scenes"`
	Lesson string  `json:"lesson"` // What it teaches, with the numbers of this run.
}

// Scene is one telling of the story.
type Scene struct {
	Name    string   `json:"scene"`
	Events  []Event  `json:"events"`
	Outcome []string `json:"outcome"` // What was found at its end.
	Counts  Counts   `json:"counts"`

	byBuckets bool // What the lanes of a page show.
}

// Event is something that happened, and where everybody stood after it.
type Event struct {
	At      float64   `json:"at_seconds"` // Since the scene began.
	Event   EventKind `json:"event"`
	Worker  string    `json:"worker,omitempty"` // Left out of what happened outside.
	Job     string    `json:"job,omitempty"`
	Attempt int       `json:"attempt,omitempty"`
	Token   int64     `json:"token,omitempty"` // The claim's.
	Text    string    `json:"text"`
	Lanes   []Lane    `json:"lanes"`

	of     *process
	key    string // The job's.
	seq    int64  // The job's; of what was reclaimed, the claim's generation.
	waited time.Duration
	status domain.Status
	ring   worker.RingChanged
}

// Lane is where a worker stands.
type Lane struct {
	Worker  string `json:"worker"`
	State   State  `json:"state"`
	Running int    `json:"running"` // Handlers.
	Buckets int    `json:"buckets"` // Its own.
}

// State is what a worker's process does.
type State string

// The states of a process.
const (
	StateWorking  State = "working"
	StateDraining State = "draining"
	StateLeft     State = "left"
	StatePaused   State = "paused"
	StateKilled   State = "killed"
)

// EventKind is a sort of event.
type EventKind string

// The sorts of events.
const (
	EventOutside       EventKind = "outside" // Something changed that is no worker's doing.
	EventJoined        EventKind = "joined"
	EventRing          EventKind = "ring"
	EventDraining      EventKind = "draining"
	EventLeft          EventKind = "left"
	EventKilled        EventKind = "killed"
	EventPaused        EventKind = "paused"
	EventWoken         EventKind = "woken"
	EventReclaimed     EventKind = "reclaimed"
	EventLost          EventKind = "lost" // A worker has learned that its lease is over.
	EventStarted       EventKind = "started"
	EventDid           EventKind = "did"           // A handler made its effect,
	EventRepeated      EventKind = "repeated"      // for another time,
	EventEarly         EventKind = "early"         // before what must come first,
	EventSkipped       EventKind = "skipped"       // or found that it was made,
	EventLostUpdate    EventKind = "lost_update"   // or wrote over what a newer run had written,
	EventWriteRefused  EventKind = "write_refused" // or was kept from it.
	EventEnded         EventKind = "ended"
	EventSettled       EventKind = "settled"
	EventResultRefused EventKind = "result_refused"

	eventEnqueued  EventKind = "enqueued"
	eventDuplicate EventKind = "duplicate"
)

// ranks order what one process tells of one moment: what ends a claim is told before what
// begins the next one.
var ranks = map[EventKind]int{
	eventEnqueued: 1, eventDuplicate: 2, EventOutside: 3, EventWoken: 4, EventJoined: 5, EventRing: 6, EventReclaimed: 7, EventLost: 8,
	EventDid: 9, EventRepeated: 9, EventEarly: 9, EventSkipped: 9, EventLostUpdate: 9, EventWriteRefused: 9,
	EventEnded: 10, EventSettled: 11, EventResultRefused: 11, EventStarted: 12, EventPaused: 13, EventKilled: 13, EventDraining: 14, EventLeft: 15,
}

// Counts are what became of the work of a scene.
type Counts struct {
	Enqueued       int `json:"enqueued"`
	Duplicates     int `json:"duplicate_requests"` // Enqueues that found the job.
	Done           int `json:"done"`
	Runs           int `json:"runs"` // Of handlers.
	Reclaimed      int `json:"reclaimed"`
	Overlaps       int `json:"overlaps"`             // Runs that began beside another one of their key.
	OutOfOrder     int `json:"out_of_order"`         // Effects that came before what must come first.
	Repeated       int `json:"effects_repeated"`     // Effects that were made before.
	WritesRefused  int `json:"stale_writes_refused"` // By the fence of what they would have changed.
	ResultsRefused int `json:"stale_results_refused"`
	LostUpdates    int `json:"lost_updates"` // Writes under a lower token over those under a higher one.
	Moved          int `json:"buckets_moved"`

	Waits      *Waits `json:"waits"`                 // From due to started.
	HotWaits   *Waits `json:"hot_waits,omitempty"`   // Of the hot key.
	OtherWaits *Waits `json:"other_waits,omitempty"` // Of all the others.
}

// Waits are percentiles, by nearest rank.
type Waits struct {
	P50 float64 `json:"p50_seconds"`
	P99 float64 `json:"p99_seconds"`
}

// EventLine is an event in a report of lines.
type EventLine struct {
	Scene string `json:"scene"`
	Event
}

// CountsLine is the end of a scene in one.
type CountsLine struct {
	Scene   string   `json:"scene"`
	Outcome []string `json:"outcome"`
	Counts  Counts   `json:"counts"`
}

// LessonLine is the last of them.
type LessonLine struct {
	Preset string `json:"preset"`
	Seed   int64  `json:"seed"`
	Lesson string `json:"lesson"`
}
