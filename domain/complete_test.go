package domain

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestGroupSettlements_OneStatementForEachSortInKeyOrder(t *testing.T) {
	t.Parallel()
	claim := func(bucket int, last byte) Claim { return Claim{Bucket: bucket, ID: JobID{15: last}} }
	groups := groupSettlements([]Settlement{
		{Claim: claim(2, 1), Outcome: Outcome{Verdict: Retry}},
		{Claim: claim(3, 1), Retention: RetentionDrop},
		{Claim: claim(1, 9), Retention: RetentionArchive},
		{Claim: claim(1, 2), Retention: RetentionArchive},
		{Claim: claim(0, 1), Retention: RetentionArchive},
		{Claim: claim(1, 1), Retention: RetentionDrop, Outcome: Outcome{Verdict: Retry}},
	})
	type summary struct {
		verdict   Verdict
		retention RetentionMode
		positions []int
	}
	want := []summary{
		{Retry, "", []int{5, 0}}, // What a completion would do with the row does not matter.
		{Complete, RetentionDrop, []int{1}},
		{Complete, RetentionArchive, []int{4, 3, 2}},
	}
	for i, group := range groups {
		got := summary{verdict: group.verdict, retention: group.retention}
		for _, member := range group.members {
			got.positions = append(got.positions, member.position)
		}
		if i >= len(want) || got.verdict != want[i].verdict || got.retention != want[i].retention || !slices.Equal(got.positions, want[i].positions) {
			t.Errorf("group %d is %+v", i, got)
		}
	}
	if len(groups) != len(want) {
		t.Errorf("%d groups, want %d", len(groups), len(want))
	}
}

func TestGroupSettlements_EveryOneIsInOneGroup(t *testing.T) {
	t.Parallel()
	one := rapid.Custom(func(t *rapid.T) Settlement {
		return Settlement{
			Claim:     Claim{Bucket: rapid.IntRange(0, 3).Draw(t, "bucket"), ID: JobID{rapid.Byte().Draw(t, "id")}},
			Retention: rapid.SampledFrom([]RetentionMode{RetentionArchive, RetentionKeep, RetentionDrop}).Draw(t, "retention"),
			Outcome:   Outcome{Verdict: Verdict(rapid.IntRange(int(Complete), int(Release)).Draw(t, "verdict")), Delay: time.Second, Error: "x"},
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		settlements := rapid.SliceOf(one).Draw(t, "settlements")
		var positions []int
		for _, group := range groupSettlements(settlements) {
			claims := make([]Claim, len(group.members))
			for i, member := range group.members {
				if *member.Settlement != settlements[member.position] {
					t.Fatalf("settlement %d changed: %+v", member.position, member)
				}
				positions = append(positions, member.position)
				claims[i] = member.Claim
			}
			if !slices.IsSortedFunc(claims, compareClaims) {
				t.Fatalf("a statement would lock out of order: %v", claims)
			}
			if len(group.delays()) != len(claims) || len(group.errors()) != len(claims) || len(group.fences().ids) != len(claims) {
				t.Fatal("the columns of a statement differ in length")
			}
		}
		slices.Sort(positions)
		if len(positions) != len(settlements) || len(slices.Compact(positions)) != len(settlements) {
			t.Fatalf("%d settlements are at %v", len(settlements), positions)
		}
	})
}

func TestTookEffect_ReadsTheJobsState(t *testing.T) {
	t.Parallel()
	const mine, later = 7, 8
	gone := jobState{}
	tests := []struct {
		verdict   Verdict
		retention RetentionMode
		found     jobState
		want      bool
	}{
		{Complete, RetentionArchive, jobState{StatusCompleted, mine}, true},
		{Complete, RetentionArchive, jobState{StatusCompleted, later}, false}, // Another claim completed it.
		{Complete, RetentionArchive, jobState{StatusPending, mine}, false},    // It was reclaimed.
		{Complete, RetentionArchive, jobState{StatusProcessing, mine}, false},
		{Complete, RetentionArchive, jobState{StatusProcessing, later}, false},
		{Complete, RetentionArchive, jobState{StatusDeadLetter, mine}, false},
		{Complete, RetentionArchive, gone, false},
		{Complete, RetentionKeep, jobState{StatusCompleted, mine}, true},
		{Complete, RetentionKeep, gone, false},
		{Complete, RetentionDrop, gone, true},
		{Complete, RetentionDrop, jobState{StatusPending, mine}, false},
		{Complete, RetentionDrop, jobState{StatusCompleted, mine}, true},
		{Retry, RetentionArchive, jobState{StatusPending, mine}, true},
		{Retry, RetentionArchive, jobState{StatusDeadLetter, mine}, true},
		{Retry, RetentionArchive, jobState{StatusPending, later}, false},
		{Retry, RetentionArchive, jobState{StatusProcessing, later}, false},
		{Retry, RetentionArchive, jobState{StatusFailed, mine}, false},
		{Retry, RetentionDrop, gone, false},
		{Fail, RetentionArchive, jobState{StatusFailed, mine}, true},
		{Fail, RetentionArchive, jobState{StatusFailed, later}, false},
		{Fail, RetentionArchive, jobState{StatusPending, mine}, false},
		{Fail, RetentionArchive, jobState{StatusDeadLetter, mine}, false},
		{Fail, RetentionDrop, gone, false},
		{Release, RetentionArchive, jobState{StatusPending, mine}, true},
		{Release, RetentionArchive, jobState{StatusPending, later}, false},
		{Release, RetentionArchive, jobState{StatusProcessing, mine}, false},
		{Release, RetentionDrop, gone, false},
	}
	for _, test := range tests {
		settlement := Settlement{
			Claim: Claim{Generation: mine}, Retention: test.retention, Outcome: Outcome{Verdict: test.verdict}, Unconfirmed: true,
		}
		if got := tookEffect(&settlement, test.found, test.found != gone); got != test.want {
			t.Errorf("verdict %d in mode %s, found %+v: %t", test.verdict, test.retention, test.found, got)
		}
	}
}
