package plans

import (
	"strings"
	"testing"
)

func TestContract_StatementsSendWhatTheyAreNamedAfter(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, statement := range Contract() {
		if seen[statement.Name] {
			t.Errorf("%s is in the contract twice", statement.Name)
		}
		seen[statement.Name] = true
		one, err := record(t.Context(), statement, 1)
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.HasPrefix(one.sql, "-- name: "+statement.Name+" :") {
			t.Errorf("%s sends %.40q", statement.Name, one.sql)
		}
	}
}

func TestContract_RecordsNothingOfAStatementThatIsNotSent(t *testing.T) {
	t.Parallel()
	if _, err := record(t.Context(), Statement{Name: "None", Call: silent}, 1); err == nil {
		t.Error("there is no error")
	}
}
