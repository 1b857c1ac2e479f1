package main

import (
	"reflect"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

func TestDecode_ReadsWhatTheServerWrites(t *testing.T) {
	t.Parallel()
	const at = "'2026-11-21 15:31:44.289697+00'"
	due := time.Date(2026, time.November, 21, 15, 31, 44, 289697000, time.UTC)
	for _, test := range []struct {
		name string
		line string
		want history.Change
		none bool
	}{
		{"a marker", "message: transactional: 1 prefix: soak, sz: 14 content:producer-1.1/7", history.Change{What: history.Mark, Marker: "producer-1.1/7"}, false},
		{
			"an insert with an odd key", "table holdfast.inbox: INSERT: id[uuid]:'j' seq[bigint]:4 partition_key[text]:'it''s [a]: b' claimed_by[text]:null available_at[timestamp with time zone]:" + at,
			history.Change{What: history.Insert, Table: history.Inbox, New: &history.Row{ID: "j", Seq: 4, PartitionKey: "it's [a]: b", AvailableAt: due}},
			false,
		},
		{
			"an update with both rows", "table holdfast.inbox: UPDATE: old-key: id[uuid]:'j' status[holdfast.job_status]:'pending' payload[jsonb]:'{}' new-tuple: id[uuid]:'j' status[holdfast.job_status]:'processing' payload[jsonb]:unchanged-toast-datum lease_generation[bigint]:9",
			history.Change{What: history.Update, Table: history.Inbox, Old: &history.Row{ID: "j", Status: "pending"}, New: &history.Row{ID: "j", Status: "processing", Generation: 9}},
			false,
		},
		{
			"a row for the archive, in whichever partition", "table holdfast.inbox_archive_20261121: INSERT: id[uuid]:'j' ordered[boolean]:true",
			history.Change{What: history.Insert, Table: history.Archive, New: &history.Row{ID: "j", Ordered: true, Status: "completed"}},
			false,
		},
		{"a delete", "table holdfast.inbox: DELETE: id[uuid]:'j'", history.Change{What: history.Delete, Table: history.Inbox, Old: &history.Row{ID: "j"}}, false},
		{"a delete that tells nothing", "table holdfast.inbox_archive_default: DELETE: (no-tuple-data)", history.Change{What: history.Delete, Table: history.Archive}, false},
		{"a producer's row", "table soak.placed: INSERT: marker[text]:'m' job[uuid]:'j'", history.Change{What: history.Insert, Table: history.Placed, New: &history.Row{ID: "j"}, Marker: "m"}, false},
		{"a table that nobody judges", "table holdfast.workers: INSERT: id[text]:'w'", history.Change{}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, found, err := decodeLine(test.line)
			if err != nil || found == test.none || !reflect.DeepEqual(got, test.want) && found {
				t.Errorf("got %+v (found: %t, error %v), want %+v", got, found, err, test.want)
			}
		})
	}
}

func TestDecode_RefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"", "table holdfast.inbox", "table holdfast.inbox: INSERT: id[uuid]:'j", "table holdfast.inbox: INSERT: id",
		"table holdfast.inbox: INSERT: seq[bigint]:four", "table holdfast.inbox: INSERT: available_at[timestamp with time zone]:'soon'",
	} {
		if change, _, err := decodeLine(line); err == nil {
			t.Errorf("%q was read as %+v", line, change)
		}
	}
}
