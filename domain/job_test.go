package domain

import (
	"encoding/json"
	"errors"
	"regexp"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var uuidForm = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestJobID_IsAUUIDv7WithItsBucketAndTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.UnixMilli(rapid.Int64Range(0, 1<<48-1).Draw(t, "milliseconds"))
		bucket := rapid.IntRange(0, 1<<14-1).Draw(t, "bucket")
		id := NewJobID(now, bucket)
		if !uuidForm.MatchString(id.String()) {
			t.Fatalf("%s is no UUID of version 7", id)
		}
		if id.Bucket() != bucket || id[14]>>6 != 0 {
			t.Fatalf("%s holds bucket %d, want %d in the low 14 bits", id, id.Bucket(), bucket)
		}
		var milliseconds int64
		for _, b := range id[:6] {
			milliseconds = milliseconds<<8 | int64(b)
		}
		if milliseconds != now.UnixMilli() {
			t.Fatalf("%s holds the time %d, want %d", id, milliseconds, now.UnixMilli())
		}
	})
}

func TestJobID_TextLeadsBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var id, viaJSON JobID
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bytes"))
		parsed, err := ParseJobID(id.String())
		if err != nil || parsed != id {
			t.Fatalf("ParseJobID(%s) = %s, %v", id, parsed, err)
		}
		encoded, err := json.Marshal(id)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(encoded, &viaJSON); err != nil || viaJSON != id {
			t.Fatalf("%s became %s on the way through JSON, %v", id, viaJSON, err)
		}
	})
}

// An id that holdfast.new_job_id(999) made at the time given.
func TestJobID_ReadsWhatPostgresMade(t *testing.T) {
	t.Parallel()
	id, err := ParseJobID("01a1fbf8-d151-7028-84fe-2ecd347003e7")
	if err != nil {
		t.Fatal(err)
	}
	if id.Bucket() != 999 {
		t.Errorf("bucket %d, want 999", id.Bucket())
	}
	made := time.Date(2026, time.November, 21, 2, 39, 10, 161_000_000, time.UTC)
	if like := NewJobID(made, 999); [6]byte(like[:6]) != [6]byte(id[:6]) || [2]byte(like[14:]) != [2]byte(id[14:]) {
		t.Errorf("NewJobID lays out %s where Postgres wrote %s", like, id)
	}
}

func TestJobID_AreDistinct(t *testing.T) {
	t.Parallel()
	now := time.Now()
	seen := map[JobID]bool{}
	for range 10_000 {
		seen[NewJobID(now, 7)] = true
	}
	if len(seen) != 10_000 {
		t.Errorf("%d of 10000 ids differ", len(seen))
	}
}

func TestParseJobID_RefusesWhatIsNoUUID(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "x", "0193d3f07c2a7e4b9a516f1d3c2a01f4", "0193d3f0-7c2a-7e4b-9a51-6f1d3c2a01f", "0193d3f0-7c2a-7e4b-9a51-6f1d3c2a01f4a",
		"0193d3f0-7c2a-7e4b-9a51-6f1d3c2a01fg", "{0193d3f0-7c2a-7e4b-9a51-6f1d3c2a01f4}", "0193d3f07-c2a-7e4b-9a51-6f1d3c2a01f4",
	} {
		_, err := ParseJobID(text)
		if invalid := (*InvalidError)(nil); !errors.As(err, &invalid) {
			t.Errorf("ParseJobID(%q): %v, want an InvalidError", text, err)
		}
	}
}
