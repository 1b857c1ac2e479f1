package domain

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-pg/holdfast/gen"
)

// Claim identifies one claim of one job. All four fields together are the fence: a statement
// that renews or settles a claim compares every one of them.
type Claim struct {
	ID         JobID
	Bucket     int
	Generation int64
	WorkerID   string
}

// Fence returns the claim's fence token. A later claim, of any job, has a larger one. Send
// it along with every write to a store that can refuse a lower token after a higher one.
func (c Claim) Fence() int64 {
	return c.Generation
}

// Guard admits the claim to a resource within the caller's transaction, unless the resource
// has seen a higher token: then it returns ErrFenced, and the caller must roll back. The
// resource, 1 to 200 characters, should be one whose jobs run one at a time.
func Guard(ctx context.Context, tx DBTX, resource string, claim Claim) error {
	if err := checkName("resource", resource); err != nil {
		return err
	}
	admitted, err := gen.New().GuardResource(ctx, tx, gen.GuardResourceParams{Resource: resource, Token: claim.Generation})
	if err != nil {
		return fmt.Errorf("guard %q: %w", resource, explain(err))
	}
	if admitted == 0 {
		return fmt.Errorf("guard %q with token %d: %w", resource, claim.Generation, ErrFenced)
	}
	return nil
}

// fenceSet is the fence of a set of claims in the columns that the SQL unnests.
type fenceSet struct {
	buckets     []int32
	ids         []pgtype.UUID
	generations []int64
}

func newFenceSet(claims []Claim) fenceSet {
	set := fenceSet{
		buckets:     make([]int32, len(claims)),
		ids:         make([]pgtype.UUID, len(claims)),
		generations: make([]int64, len(claims)),
	}
	for i, claim := range claims {
		set.buckets[i] = int32(claim.Bucket)
		set.ids[i] = claim.ID.uuid()
		set.generations[i] = claim.Generation
	}
	return set
}

// compareClaims orders claims by key, the order in which sets lock their rows: two sets in
// different orders could deadlock.
func compareClaims(a, b Claim) int {
	if a.Bucket != b.Bucket {
		return a.Bucket - b.Bucket
	}
	return slices.Compare(a.ID[:], b.ID[:])
}
