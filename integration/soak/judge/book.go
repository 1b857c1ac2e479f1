package judge

import (
	"encoding/hex"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

// The book is what a judgement remembers: a record a job, a claim and an enqueue, none of an
// event. Names are kept once, and records point at them by number; 0 is nobody.

type jobID [16]byte

func (id jobID) String() string {
	digits := hex.EncodeToString(id[:])
	return digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
}

func parseID(text string) (id jobID, err error) {
	if len(text) != 36 {
		return id, fmt.Errorf("%.60q is no job id", text)
	}
	var digits [32]byte
	copy(digits[:8], text[:8])
	copy(digits[8:12], text[9:13])
	copy(digits[12:16], text[14:18])
	copy(digits[16:20], text[19:23])
	copy(digits[20:], text[24:])
	if _, err := hex.Decode(id[:], digits[:]); err != nil {
		return id, fmt.Errorf("%.60q is no job id", text)
	}
	return id, nil
}

// job is what is known of a job so far.
type job struct {
	id         jobID
	number     uint32
	seq        int64
	generation int64
	lease      int64 // Of the current claim, in nanoseconds as all times here.
	firstLease int64 // Before any renewal.
	available  int64
	acked      int64 // When its producer knew that it had committed; 0: never.
	token      int64 // The highest that the sink accepted for the resource of its name.
	marker     uint32
	winner     uint32 // The process that was told that it made the job.
	holder     uint32
	lane       uint32
	finalLine  uint32

	attempts, max   uint16
	claims          uint16
	ops             uint16 // Operations of clients upon it.
	runs            uint16
	status          status
	place           place
	final           uint8 // Rows at the end.
	completions     uint8
	redrives        uint8 // As committed.
	redrivesAllowed uint8 // As ordered, or perhaps ordered.
	redrivesTold    uint8 // As ordered, with success.
	booking         bool
	ordered         bool
	laneWaits       bool // Others of its lane wait for its retry.
}

type place uint8

const (
	nowhere place = iota
	inbox
	archive
)

var placeNames = [...]string{"no table", history.Inbox, history.Archive}

type status uint8

const (
	none status = iota
	pending
	processing
	completed
	failed
	deadLetter
)

var statusNames = [...]string{"none", "pending", "processing", "completed", "failed", "dead_letter"}

func (s status) String() string { return statusNames[s] }

func (s status) terminal() bool { return s == completed || s == failed || s == deadLetter }

func parseStatus(text string) (status, error) {
	at := slices.Index(statusNames[1:], text)
	if at < 0 {
		return none, fmt.Errorf("%.60q is no status", text)
	}
	return status(at + 1), nil
}

// claim is what its worker was told of it, and what the log has of it.
type claim struct {
	job    uint32
	client uint32 // The worker, as it said.
	worker uint32 // The worker, as the log says.
	line   uint32 // Of the log: its end, or while it has none its beginning.
	at     where  // What the client said last of a renewal or a settlement.

	ok, again, unsure, refused, failed verdicts // Settlements, by what the client was told; again: of a repeated one.

	oks                  uint8    // Settlements told as done that were not repeated.
	told                 status   // Of the last of those.
	end                  moveKind // How it ended; placed: it has not.
	runs                 uint8
	attempt, attemptTold uint16
	renewed, renewedTold uint16
	renewedUnsure        uint16
	applied, appliedTold uint16 // Effects that the sink accepted, and that the worker was told.

	logged     bool // The log has it.
	given      bool // A worker was told that it has it.
	ranOK      bool
	renewStale bool
	early      bool // It ended before its lease did.
	worded     bool // It ended with an error text of a handler.
	acted      bool // Something was done by it that only a claim can do.
	sentAgain  bool // It ended after a settlement was told as not done: by another.
}

// asked is an enqueue of which a client wrote.
type asked struct {
	marker  uint32
	job     uint32
	process uint32
	outcome outcome
	at      where
}

type outcome uint8

const (
	saidNothing outcome = iota
	saidOK
	saidDuplicate
	saidRolledBack
	saidStale
	saidRefused
	saidError
	saidAmbiguous
)

var outcomeNames = [...]string{"", history.OK, history.Duplicate, history.RolledBack, history.Stale, history.Refused, history.Error, history.Ambiguous}

// verdicts are a set of complete, retry, fail and release.
type verdicts uint8

const (
	toComplete verdicts = 1 << iota
	toRetry
	toFail
	toRelease
)

var verdictNames = [...]string{"complete", "retry", "fail", "release"}

func (v verdicts) String() string {
	for i, name := range verdictNames {
		if v&(1<<i) != 0 {
			return name
		}
	}
	return "nothing"
}

// where is a line of a file.
type where struct {
	file uint16
	line uint32
}

// drain is one that ended well.
type drain struct {
	worker     uint32
	begin, end int64
	at         where
	helped     bool // Claims ended while it lasted.
}

// holder is a worker by its id.
type holder struct {
	held  int
	drain *drain
	gone  bool
}

// paged is a list that grows without being copied.
type paged[T any] struct {
	pages  []*[1024]T
	length uint32
}

func (p *paged[T]) add() (record *T, number uint32) {
	if p.length%1024 == 0 {
		p.pages = append(p.pages, new([1024]T))
	}
	p.length++
	return p.at(p.length), p.length
}

// at returns the record of a number, which counts from 1.
func (p *paged[T]) at(number uint32) *T {
	return &p.pages[(number-1)/1024][(number-1)%1024]
}

func (p *paged[T]) all(yield func(*T) bool) {
	for number := uint32(1); number <= p.length; number++ {
		if !yield(p.at(number)) {
			return
		}
	}
}

// names numbers texts that are few, from 1 on.
type names struct {
	numbers map[string]uint32
	texts   []string
}

func (n *names) number(text string) uint32 {
	if text == "" {
		return 0
	}
	number, known := n.numbers[text]
	if !known {
		if n.numbers == nil {
			n.numbers = map[string]uint32{}
		}
		n.texts = append(n.texts, text)
		number = uint32(len(n.texts))
		n.numbers[text] = number
	}
	return number
}

func (n *names) text(number uint32) string {
	if number == 0 {
		return "nobody"
	}
	return n.texts[number-1]
}

// claimPage holds claims whose generations follow each other, as they nearly all do.
const claimPage = 128

type book struct {
	jobs     paged[job]
	numbers  map[jobID]uint32
	claims   map[int64]*[claimPage]claim
	enqueues paged[asked]
	markers  map[uint64]uint32
	seen     []bool            // Of each marker: it is in the log.
	keys     map[uint64]uint32 // The job of each queue and idempotency key.
	lanes    map[uint64]uint32
	lane     []lane
	holders  []holder
	drains   []*drain
	repeats  map[int64]int64 // When a doubtful settlement was sent again, by generation.
	failures map[int64]int64 // When a settlement was last told as not done, by generation.

	files, workers, processes names
	salt                      maphash.Seed
}

func newBook() book {
	return book{
		numbers: map[jobID]uint32{}, claims: map[int64]*[claimPage]claim{}, markers: map[uint64]uint32{}, keys: map[uint64]uint32{},
		lanes: map[uint64]uint32{}, repeats: map[int64]int64{}, failures: map[int64]int64{}, seen: make([]bool, 1), lane: make([]lane, 1), holders: make([]holder, 1), salt: maphash.MakeSeed(),
	}
}

// jobOf returns the record of a job, a new one if it is not known.
func (b *book) jobOf(text string) (*job, error) {
	id, err := parseID(text)
	if err != nil {
		return nil, err
	}
	if number, known := b.numbers[id]; known {
		return b.jobs.at(number), nil
	}
	record, number := b.jobs.add()
	record.id, record.number = id, number
	b.numbers[id] = number
	return record, nil
}

func (b *book) claimOf(generation int64) *claim {
	page := b.claims[generation/claimPage]
	if page == nil {
		page = new([claimPage]claim)
		b.claims[generation/claimPage] = page
	}
	return &page[generation%claimPage]
}

// allClaims yields the claims of which anything is known, by their generations.
func (b *book) allClaims(yield func(int64, *claim) bool) {
	for _, number := range slices.Sorted(maps.Keys(b.claims)) {
		for i := range b.claims[number] {
			if c := &b.claims[number][i]; c.job != 0 && !yield(number*claimPage+int64(i), c) {
				return
			}
		}
	}
}

// hash stands for a text, or two, that are many. At a million of each, two of them are taken
// for one in one of 30 million runs.
func (b *book) hash(texts ...string) uint64 {
	var hash maphash.Hash
	hash.SetSeed(b.salt)
	for _, text := range texts {
		_, _ = hash.WriteString(text)
		_ = hash.WriteByte(0)
	}
	return hash.Sum64()
}

func (b *book) markerOf(text string) uint32 {
	if text == "" {
		return 0
	}
	hash := b.hash(text)
	number, known := b.markers[hash]
	if !known {
		number = uint32(len(b.seen))
		b.seen = append(b.seen, false)
		b.markers[hash] = number
	}
	return number
}

func (b *book) workerOf(text string) uint32 {
	number := b.workers.number(text)
	for int(number) >= len(b.holders) {
		b.holders = append(b.holders, holder{})
	}
	return number
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
