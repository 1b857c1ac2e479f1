package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/gen"
)

// pairRecipe says how to run a write statement so that it meets the others.
type pairRecipe struct {
	starts []string                 // Where it does something.
	args   func(session int) any    // Its argument behind the database, in session 1 or 2; nil: none.
	before string                   // A statement that goes before it, in the same transaction.
	passes bool                     // It passes by what somebody else has locked and never waits for it.
	yields bool                     // It waits for a moment only, then lets its work be for this time.
	fenced func(held, on bool) bool // For those that have a fence: whether they find their claim, if it is held and its lease is on.
}

func always(args any) func(int) any { return func(int) any { return args } }

func whenHeld(held, _ bool) bool { return held }

var (
	pairID    = pgtype.UUID{Bytes: [16]byte{0: 1, 1: 0x90, 6: 0x70, 8: 0x80, 15: 7}, Valid: true}
	pairIDs   = []pgtype.UUID{pairID}
	pairPlace = []int32{7}
	pairFence = []int64{pairToken}
	noDelay   = []time.Duration{0}
	longTime  = 30 * 24 * time.Hour
)

// pairRecipes has one for each statement that writes or locks. A settlement carries the claim
// of worker w1 that the start states hold or have lost; a claim is made by w1 in the first
// session, so that it may win the same job again, and by w2 in the second.
var pairRecipes = map[string]pairRecipe{
	"EnqueueJob": {starts: []string{"a queue", "waiting", "old", "nothing"}, args: func(int) any {
		return gen.EnqueueJobParams{Queue: pairQueue, Draw: rand.Int64(), Ring: true, Hash: 7, IdempotencyKey: "key", Kind: "k", PartitionKey: "lane", Headers: json.RawMessage("null"), Payload: json.RawMessage("{}")}
	}},
	"EnqueueJobs": {starts: []string{"a queue", "waiting", "old"}, args: func(int) any {
		return gen.EnqueueJobsParams{
			Queues: []string{pairQueue, pairQueue}, Draws: []int64{rand.Int64(), rand.Int64()}, Hashes: []int32{7, 7}, IdempotencyKeys: []string{"key", "another"},
			Kinds: []string{"k", "k"}, PartitionKeys: []string{"lane", "lane"}, Payloads: []json.RawMessage{json.RawMessage("{}"), json.RawMessage("{}")},
		}
	}},
	"EnqueuePlainJob": {starts: []string{"a queue"}, args: func(int) any {
		return gen.EnqueuePlainJobParams{Queue: pairQueue, Draw: rand.Int64(), Ring: true, Hash: 7, Kind: "k", PartitionKey: "lane", Headers: json.RawMessage("null"), Payload: json.RawMessage("{}")}
	}},
	"EnqueuePlainJobs": {starts: []string{"a queue", "lane"}, args: func(int) any {
		return gen.EnqueuePlainJobsParams{
			Queues: []string{pairQueue}, Draws: []int64{rand.Int64()}, Hashes: []int32{7},
			Kinds: []string{"k"}, PartitionKeys: []string{"lane"}, Payloads: []json.RawMessage{json.RawMessage("{}")},
		}
	}},
	"EnsureQueue": {starts: []string{"nothing"}, args: always(pairQueue)},
	"CreateQueue": {starts: []string{"nothing"}, args: always(gen.CreateQueueParams{
		Name: pairQueue, Ordered: true, MaxAttempts: 5, RetentionMode: gen.HoldfastRetentionModeDrop, Retention: longTime, DedupeWindow: time.Hour, Actor: "anna",
	})},
	"SetQueue": {starts: []string{"a queue", "waiting"}, args: func(session int) any {
		return gen.SetQueueParams{Name: pairQueue, Ordered: new(true), MaxAttempts: new(int32(7 + session)), Actor: "anna", Reason: "why"}
	}},
	"PauseQueue": {starts: []string{"waiting", "lane"}, args: always(gen.PauseQueueParams{Name: pairQueue, Paused: true, Actor: "anna"})},

	"ClaimJobs": {starts: []string{"waiting"}, passes: true, args: func(session int) any {
		return gen.ClaimJobsParams{WorkerID: fmt.Sprint("w", session), Queue: pairQueue, PartitionBuckets: pairPlace, Floors: make([]time.Time, 1), Quota: 5, Batch: 5, Lease: 90 * time.Second}
	}},
	"ClaimLanes": {starts: []string{"lane", "busy lane"}, passes: true, before: "LockLanes", args: func(session int) any {
		return gen.ClaimLanesParams{WorkerID: fmt.Sprint("w", session), Queue: pairQueue, PartitionBuckets: pairPlace, AfterKeys: []string{""}, Keys: 9, Quota: 5, Batch: 5, Lease: 90 * time.Second}
	}},
	"LockLanes": {starts: []string{"lane"}, passes: true, args: always(gen.LockLanesParams{PartitionBuckets: pairPlace, Queue: pairQueue})},

	"LockClaim": {starts: []string{"held"}, fenced: whenHeld, args: always(gen.LockClaimParams{ID: pairID, PartitionBucket: 7, LeaseGeneration: pairToken, WorkerID: "w1"})},
	"RenewLeases": {starts: []string{"held", "expired"}, fenced: func(held, on bool) bool { return held && on }, args: always(gen.RenewLeasesParams{
		PartitionBuckets: pairPlace, IDs: pairIDs, LeaseGenerations: pairFence, WorkerID: "w1", Lease: time.Hour,
	})},
	"CompleteJobs":        {starts: []string{"held", pairDays}, fenced: whenHeld, args: always(gen.CompleteJobsParams{PartitionBuckets: pairPlace, IDs: pairIDs, LeaseGenerations: pairFence, WorkerID: "w1"})},
	"CompleteAndKeepJobs": {starts: []string{"held"}, fenced: whenHeld, args: always(gen.CompleteAndKeepJobsParams{PartitionBuckets: pairPlace, IDs: pairIDs, LeaseGenerations: pairFence, WorkerID: "w1"})},
	"CompleteAndDropJobs": {starts: []string{"held"}, fenced: whenHeld, args: always(gen.CompleteAndDropJobsParams{PartitionBuckets: pairPlace, IDs: pairIDs, LeaseGenerations: pairFence, WorkerID: "w1"})},
	"RetryJobs": {starts: []string{"held", "last try"}, fenced: whenHeld, args: always(gen.RetryJobsParams{
		PartitionBuckets: pairPlace, IDs: pairIDs, LeaseGenerations: pairFence, WorkerID: "w1", Delays: []time.Duration{time.Hour}, Errors: []string{"boom"},
	})},
	"FailJobs": {starts: []string{"held"}, fenced: whenHeld, args: always(gen.FailJobsParams{
		PartitionBuckets: pairPlace, IDs: pairIDs, LeaseGenerations: pairFence, WorkerID: "w1", Errors: []string{"boom"},
	})},
	"ReleaseJobs": {starts: []string{"held"}, fenced: whenHeld, args: always(gen.ReleaseJobsParams{
		PartitionBuckets: pairPlace, IDs: pairIDs, LeaseGenerations: pairFence, WorkerID: "w1", Delays: noDelay, Events: []string{"released"}, Details: []string{"no handler"},
	})},
	"RecordLostLeases": {starts: []string{"waiting", "expired"}, args: always(gen.RecordLostLeasesParams{
		IDs: pairIDs, LeaseGenerations: pairFence, Settlings: []bool{false}, Details: []string{"refused"}, WorkerID: "w1",
	})},
	"ReclaimExpiredLeases": {starts: []string{"expired", "last try"}, passes: true, args: always(gen.ReclaimExpiredLeasesParams{Batch: 5})},
	"RedriveJobs":          {starts: []string{"dead"}, args: always(gen.RedriveJobsParams{PartitionBuckets: pairPlace, IDs: pairIDs, Actor: "anna", MaxAttempts: new(int32(7))})},
	"PurgeJobs":            {starts: []string{"dead"}, args: always(gen.PurgeJobsParams{PartitionBuckets: pairPlace, IDs: pairIDs, Actor: "anna"})},
	"CancelJobs":           {starts: []string{"waiting", "held"}, passes: true, args: always(gen.CancelJobsParams{PartitionBuckets: pairPlace, IDs: pairIDs, Actor: "anna", Reason: "why"})},
	"ReleaseClaims": {starts: []string{"held"}, passes: true, fenced: whenHeld, args: always(gen.ReleaseClaimsParams{
		PartitionBuckets: pairPlace, IDs: pairIDs, LeaseGenerations: pairFence, WorkerIds: []string{"w1"}, Actor: "anna",
	})},

	"MarkHandled": {starts: []string{"a queue", "old"}, args: always(gen.MarkHandledParams{Scope: "effect", Key: "key", JobID: pairID})},
	"GuardResource": {starts: []string{"a queue", "held", "old"}, args: func(session int) any {
		return gen.GuardResourceParams{Resource: "r", Token: pairToken + 2 - int64(session)} // The second is lower than the first.
	}},

	"JoinWorker": {starts: []string{"a queue"}, args: always(gen.JoinWorkerParams{ID: "w1", Queues: []string{pairQueue}, Metadata: json.RawMessage("{}")})},
	"BeatWorker": {starts: []string{"waiting", "old"}, args: always(gen.BeatWorkerParams{ID: "w1", Metadata: json.RawMessage(`{"beat": 1}`)})},
	"DrainWorker": {starts: []string{"waiting", "old"}, args: func(session int) any {
		if session == 1 {
			return gen.DrainWorkerParams{ID: "w1"} // The worker itself.
		}
		return gen.DrainWorkerParams{ID: "w1", Actor: new("anna")}
	}},
	"EvictWorker":          {starts: []string{"waiting"}, args: always(gen.EvictWorkerParams{ID: "w1", Actor: "anna"})},
	"LeaveWorker":          {starts: []string{"waiting", "old"}, args: always("w1")},
	"MarkStaleWorkersDead": {starts: []string{"old"}, passes: true, args: always(gen.MarkStaleWorkersDeadParams{TTL: 30 * time.Second, Batch: 5})},
	"DeleteDeadWorkers":    {starts: []string{"dead worker"}, passes: true, args: always(gen.DeleteDeadWorkersParams{Age: longTime, Batch: 5})},
	"ArmWake":              {starts: []string{"a queue", "dead worker"}, args: always(gen.ArmWakeParams{Queues: []string{pairQueue}, WorkerID: "w1"})},
	"DisarmWake":           {starts: []string{"waiting", "dead worker"}, args: always(gen.DisarmWakeParams{Queues: []string{pairQueue}, WorkerID: "w1"})},
	"DisarmDeadWorkers":    {starts: []string{"dead worker"}, passes: true, args: always(int32(5))},

	// It has nothing to do here; TestTokensOnlyGrow_RacingWorkersRaiseTheEpochOnce has its races.
	"AdvanceEpoch": {starts: []string{"waiting"}},

	"TryHousekeeping":      {starts: []string{"nothing"}, passes: true},
	"ArchiveCompletedJobs": {starts: []string{"kept", pairDays}, passes: true, args: always(int32(5))},
	"DeleteExpiredKeys":    {starts: []string{"old"}, passes: true, args: always(int32(5))},
	"DeleteOldMarks":       {starts: []string{"old"}, passes: true, args: always(gen.DeleteOldMarksParams{Age: longTime, Batch: 5})},
	"DeleteUnusedFences":   {starts: []string{"old"}, passes: true, args: always(gen.DeleteUnusedFencesParams{Age: longTime, Batch: 5})},
	"DeleteOldEvents":      {starts: []string{"old"}, passes: true, args: always(gen.DeleteOldEventsParams{Age: longTime, Batch: 5})},
	"CreateArchiveDays":    {starts: []string{"held", pairDays}, yields: true, args: always(int32(3))},
	"DropArchiveDays":      {starts: []string{"held", pairDays}, yields: true},
}

// runPair runs a statement, with what goes before it, and tells its answer in comparable words.
func runPair(ctx context.Context, tx gen.DBTX, name string, session int) (string, error) {
	recipe := pairRecipes[name]
	if recipe.before != "" {
		if _, err := runPair(ctx, tx, recipe.before, session); err != nil {
			return "", err
		}
	}
	arguments := []reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(tx)}
	if recipe.args != nil {
		arguments = append(arguments, reflect.ValueOf(recipe.args(session)))
	}
	results := reflect.ValueOf(gen.New()).MethodByName(name).Call(arguments)
	err, _ := results[len(results)-1].Interface().(error)
	if errors.Is(err, pgx.ErrNoRows) {
		return nothingFound, nil
	}
	if err != nil || len(results) == 1 {
		return "", err
	}
	return pairAnswer(results[0]), nil
}

// nothingFound is the answer of a statement that did nothing.
const nothingFound = "nothing"

// pairAnswer leaves out what differs from run to run: tokens, times, random ids.
func pairAnswer(value reflect.Value) string {
	switch result := value.Interface().(type) {
	case pgtype.UUID:
		return map[string]string{pairJob: "the job", pairNext: "the next job"}[domain.JobID(result.Bytes).String()]
	case time.Time, time.Duration, json.RawMessage, *string:
		return ""
	}
	if value.IsZero() && value.Kind() != reflect.Struct || value.Kind() == reflect.Slice && value.Len() == 0 {
		return nothingFound
	}
	parts := []string{}
	switch value.Kind() {
	case reflect.Slice:
		for i := range value.Len() {
			parts = append(parts, pairAnswer(value.Index(i)))
		}
	case reflect.Struct:
		for i := range value.NumField() {
			if field := value.Type().Field(i); field.Type.Kind() != reflect.Int64 {
				parts = append(parts, field.Name+"="+pairAnswer(value.Field(i)))
			}
		}
	case reflect.String:
		if _, err := fmt.Sscan(value.String(), new(int)); err == nil {
			return "a time" // What LockClaim sets.
		}
		return value.String()
	default:
		return fmt.Sprint(value.Interface())
	}
	return strings.Join(parts, " ")
}
