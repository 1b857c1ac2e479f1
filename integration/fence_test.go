package integration

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// A name of no characters would make one resource of all that were forgotten to be named.
func TestFencedEffects_ResourceHasANameOf1To200Characters(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	job := holdfast.Job[note]{ClaimedJob: domain.ClaimedJob{Claim: domain.Claim{Generation: 7}}}
	for _, name := range []string{"", strings.Repeat("ä", 201)} {
		var invalid *holdfast.InvalidError
		if err := holdfast.Guard(t.Context(), database.Pool, name, job); !errors.As(err, &invalid) || invalid.Field != "resource" {
			t.Errorf("a name of %d bytes: %v, want an InvalidError of the resource", len(name), err)
		}
	}
	for _, name := range []string{"ä", strings.Repeat("ä", 200)} {
		if err := holdfast.Guard(t.Context(), database.Pool, name, job); err != nil {
			t.Errorf("a name of %d bytes: %v", len(name), err)
		}
	}
}
