package domain

import (
	"errors"
	"testing"
	"time"
)

func TestCursor_IsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	for _, written := range []place{
		atStart, atEnd,
		{at: time.Date(2026, 11, 21, 3, 35, 36, 959123000, time.UTC), id: NewJobID(time.Now(), 7), seq: 42, generation: 1 << 41, bucket: 1023, key: "order:7\nand \x00 more"},
	} {
		sources := []source{{name: "first"}, {name: "second"}}
		read, err := readCursor(writeCursor("second", written), &sources)
		if err != nil || !read.at.Equal(written.at) || len(sources) != 1 || sources[0].name != "second" {
			t.Errorf("%+v was read as %+v of %v, %v", written, read, sources, err)
		}
		read.at = written.at
		if read != written {
			t.Errorf("%+v was read as %+v", written, read)
		}
	}
}

func FuzzReadCursor(f *testing.F) {
	f.Add(writeCursor("newest", atEnd))
	f.Add("bmV3ZXN0CgoKCgoKCg")
	f.Fuzz(func(t *testing.T, cursor string) {
		sources := []source{newestJobs}
		_, err := readCursor(cursor, &sources)
		var invalid *InvalidError
		if err != nil && (!errors.As(err, &invalid) || invalid.Field != "after") {
			t.Errorf("%q: %v", cursor, err)
		}
	})
}

func TestStates_EachHasASource(t *testing.T) {
	t.Parallel()
	for _, state := range append(States(), "") {
		if sources, err := sourcesOf(state); err != nil || len(sources) == 0 {
			t.Errorf("%q: %v", state, err)
		}
	}
}
