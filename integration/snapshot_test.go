package integration

import (
	"testing"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

func TestSnapshot_IsOfOneMomentAndWritesNothing(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	first := enqueue(t, database)
	err := domain.Snapshot(t.Context(), database.Pool, func(db domain.DBTX) error {
		before, err := domain.FindStanding(t.Context(), db, first)
		if err != nil {
			return err
		}
		wantError(t, domain.PauseQueue(t.Context(), database.Pool, domain.DefaultQueue), nil)
		second := enqueue(t, database)
		after, err := domain.FindStanding(t.Context(), db, first)
		if err != nil || after.QueuePaused || after.DueIn != before.DueIn {
			t.Errorf("%+v, then %+v, %v", before, after, err)
		}
		_, err = domain.FindStanding(t.Context(), db, second)
		wantError(t, err, domain.ErrNotFound)

		var scans string
		if err := db.QueryRow(t.Context(), "SHOW enable_seqscan").Scan(&scans); err != nil || scans != "off" {
			t.Errorf("statements are planned with enable_seqscan %s: %v", scans, err)
		}
		_, err = domain.Enqueue(t.Context(), db, note{})
		wantError(t, err, domain.ErrReadOnly)
		return nil
	})
	wantError(t, err, nil)
}
