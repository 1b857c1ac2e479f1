package doctor

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-pg/holdfast/domain"
)

func TestServerVersion_IsOneThatTheTestsRunOn(t *testing.T) {
	t.Parallel()
	for version, well := range map[int32]bool{130_022: false, 140_000: true, 150_018: true, 180_001: true, 190_000: false} {
		found, err := serverVersion.find(t.Context(), &patient{server: domain.Server{Version: version, VersionText: "x.y"}})
		if err != nil || well != (len(found) == 0) {
			t.Errorf("of %d it says %v, %v", version, found, err)
		}
	}
}

func TestFindings_AreBoundedAndSayHowManyMore(t *testing.T) {
	t.Parallel()
	symptoms := make([]symptom, 23)
	for i := range symptoms {
		symptoms[i] = symptom{what: fmt.Sprint("symptom ", i+1), fix: "fix"}
	}
	found := check{id: "planted", why: "why", severity: Warning}.findings(symptoms)
	if len(found) != mostSymptoms || found[0].What != "symptom 1" || found[mostSymptoms-1].What != "symptom 10 (and 13 more like this)" {
		t.Errorf("%+v", found)
	}
	if found := (check{}).findings(symptoms[:mostSymptoms]); len(found) != mostSymptoms || strings.Contains(found[mostSymptoms-1].What, "more") {
		t.Errorf("%+v", found)
	}
}

func TestChecks_AreCompleteAndNamedOnce(t *testing.T) {
	t.Parallel()
	ids := Checks()
	if sorted := slices.Compact(slices.Sorted(slices.Values(ids))); len(sorted) != len(ids) {
		t.Errorf("an id stands twice in %v", ids)
	}
	for _, check := range checks() {
		if check.id == "" || !strings.HasPrefix(check.examines, "that ") || !strings.HasSuffix(check.why, ".") || check.severity == "" || check.find == nil {
			t.Errorf("%+v lacks something", check)
		}
	}
}

func TestFixes_QuoteWhatTheyName(t *testing.T) {
	t.Parallel()
	p := &patient{server: domain.Server{RoleName: `o"k`, DatabaseName: "shop"}, settings: map[string]domain.Setting{"given": {Source: "client"}}}
	for got, want := range map[string]string{
		p.forRole("lock_timeout", "1's"): `ALTER ROLE "o""k" IN DATABASE "shop" SET lock_timeout = '1''s';`,
		p.forRole("given", "1s"):         "take given out of the options of the database URL, or of PGOPTIONS",
		dropSlot("it's"):                 "SELECT pg_drop_replication_slot('it''s'); -- or start who reads it",
	} {
		if got != want {
			t.Errorf("prints %s, want %s", got, want)
		}
	}
}
