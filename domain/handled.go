package domain

import (
	"context"
	"fmt"

	"github.com/holdfast-pg/holdfast/gen"
)

// MarkHandled records, in the handler's own transaction, that the named effect of a job is
// done, and tells whether this is the first time. false: the effect was done by an earlier
// run of the job, and the handler must not do it again. The name has 1 to 200 characters.
// While another run's transaction is making the same mark the call waits for it to end.
func MarkHandled(ctx context.Context, tx DBTX, id JobID, name string) (first bool, err error) {
	if err := checkName("name", name); err != nil {
		return false, err
	}
	marked, err := gen.New().MarkHandled(ctx, tx, gen.MarkHandledParams{Scope: name, Key: id.String(), JobID: id.uuid()})
	if err != nil {
		return false, fmt.Errorf("mark %s of job %s handled: %w", name, id, explain(err))
	}
	return marked == 1, nil
}
