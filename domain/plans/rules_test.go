package plans

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/holdfast-pg/holdfast/domain"
)

func silent(context.Context, domain.DBTX, int) error { return nil }

func TestRules_EachIsFoundInAPlan(t *testing.T) {
	t.Parallel()
	const scan = `{"Node Type": "Index Scan", "Parent Relationship": "Outer", "Relation Name": "inbox", "Index Name": "inbox_pkey", "Index Cond": "(id = $0)"}`
	for name, test := range map[string]struct {
		plan string
		want []string
	}{
		"an index that is meant":   {scan, nil},
		"one that is not":          {`{"Node Type": "Index Only Scan", "Relation Name": "inbox", "Index Name": "inbox_dead_idx", "Index Cond": "x"}`, []string{"finds rows of inbox by inbox_dead_idx, which is not for it"}},
		"an index without a key":   {`{"Node Type": "Index Scan", "Relation Name": "inbox", "Index Name": "inbox_pkey"}`, []string{"walks all of inbox_pkey"}},
		"a day's index":            {`{"Node Type": "Index Scan", "Relation Name": "inbox_archive_20260101", "Index Name": "inbox_archive_20260101_id_idx", "Index Cond": "x"}`, nil},
		"a bitmap":                 {`{"Node Type": "Bitmap Heap Scan", "Relation Name": "inbox", "Plans": [{"Node Type": "Bitmap Index Scan", "Index Name": "inbox_claim_idx", "Index Cond": "x"}]}`, []string{"finds rows of inbox by inbox_claim_idx, which is not for it"}},
		"a table":                  {`{"Node Type": "Seq Scan", "Relation Name": "fences", "Total Cost": 90}`, []string{"reads all of fences"}},
		"a table of few pages":     {`{"Node Type": "Seq Scan", "Relation Name": "fences", "Total Cost": 9}`, nil},
		"a table of few rows":      {`{"Node Type": "Seq Scan", "Relation Name": "workers", "Total Cost": 10000000090}`, nil},
		"a range of pages":         {`{"Node Type": "Tid Range Scan", "Relation Name": "inbox_archive_20260101", "TID Cond": "x", "Total Cost": 90}`, nil},
		"one of another table":     {`{"Node Type": "Tid Range Scan", "Relation Name": "inbox", "TID Cond": "x", "Total Cost": 90}`, []string{"reads all of inbox"}},
		"a cost":                   {`{"Node Type": "Result", "Total Cost": 50001}`, []string{"is expected to cost 50001, more than 50000"}},
		"a join":                   {`{"Node Type": "Hash Join", "Plans": [{"Node Type": "Hash", "Parent Relationship": "Inner", "Plans": [` + scan + `]}]}`, []string{"reads inbox for a hash join"}},
		"a join of something else": {`{"Node Type": "Merge Join", "Plans": [{"Node Type": "CTE Scan", "Parent Relationship": "Inner"}, {"Node Type": "Limit", "Parent Relationship": "InitPlan", "Plans": [` + scan + `]}]}`, nil},
		"a sort":                   {`{"Node Type": "Sort", "Plans": [` + scan + `]}`, []string{"sorts inbox without a limit"}},
		"a sort of a few":          {`{"Node Type": "Sort", "Plans": [{"Node Type": "Limit", "Parent Relationship": "Outer", "Plans": [` + scan + `]}]}`, nil},
		"a sort of locked rows": {
			`{"Node Type": "Sort", "Plans": [{"Node Type": "Limit", "Parent Relationship": "Outer", "Plans": [{"Node Type": "LockRows", "Parent Relationship": "Outer", "Plans": [` + scan + `]}]}]}`,
			[]string{"sorts rows that it has locked, also those that it will not return"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var plan node
			if err := json.Unmarshal([]byte(test.plan), &plan); err != nil {
				t.Fatal(err)
			}
			meant := Statement{Name: "Planted", Indexes: []string{"inbox_pkey", "inbox_archive_id_idx"}, Pages: []string{"inbox_archive"}}
			if says := broken(meant, 1, plan); !slices.Equal(says, test.want) {
				t.Errorf("says %q, want %q", says, test.want)
			}
		})
	}
}
