package db

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestSources_AreNumberedFromOneWithoutGaps(t *testing.T) {
	t.Parallel()
	sources, err := Sources()
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`^\d{5}(_[a-z]+)+$`)
	for i, source := range sources {
		if source.Version != int64(i)+1 || !name.MatchString(source.Name) || !strings.HasPrefix(source.Name, fmt.Sprintf("%05d_", i+1)) {
			t.Errorf("migration %d is %s, version %d", i+1, source.Name, source.Version)
		}
		if source.Applied || !source.AppliedAt.IsZero() {
			t.Errorf("%s counts as applied without a database", source.Name)
		}
	}
}

func TestSources_SayWhyAndWhichLocksInBothDirections(t *testing.T) {
	t.Parallel()
	sources, err := Sources()
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		text, err := fs.ReadFile(migrations, "migrations/"+source.Name+".sql")
		if err != nil {
			t.Fatal(err)
		}
		up, down, both := strings.Cut(string(text), "\n-- +goose Down\n")
		if !both || strings.TrimSpace(down) == "" {
			t.Errorf("%s has no way down", source.Name)
		}
		if !strings.HasPrefix(up, "-- +goose Up\n-- Why: ") || !strings.Contains(up, "\n-- Locks: ") {
			t.Errorf("%s does not begin with why it is and which locks it takes", source.Name)
		}
		if source.Version == 1 {
			continue // Makes the table that holds the version.
		}
		if want := fmt.Sprintf("UPDATE holdfast.meta SET schema_version = %d, oldest_binary = ", source.Version); !strings.Contains(up, want) {
			t.Errorf("%s lacks %q", source.Name, want)
		}
		if want := fmt.Sprintf("UPDATE holdfast.meta SET schema_version = %d, oldest_binary = ", source.Version-1); !strings.HasPrefix(down, want) {
			t.Errorf("the way down of %s does not begin with %q", source.Name, want)
		}
	}
}

// What a migration adds, the roles of each duty may need: holdfast.duty_privileges() says what, and
// a migration ends by granting it, whatever tool runs it. The way back takes away what it gave.
func TestSources_LaterMigrationsGrantAgain(t *testing.T) {
	t.Parallel()
	const grantRoles = 12 // The migration that has the roles.
	sources, err := Sources()
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		if source.Version <= grantRoles {
			continue
		}
		text, err := fs.ReadFile(migrations, "migrations/"+source.Name+".sql")
		if err != nil {
			t.Fatal(err)
		}
		up, down, _ := strings.Cut(string(text), "\n-- +goose Down\n")
		for _, direction := range []string{up, down} {
			if !strings.HasSuffix(strings.TrimSpace(direction), "\nSELECT holdfast.grant_roles();") {
				t.Errorf("%s must end with SELECT holdfast.grant_roles(); in both directions", source.Name)
			}
		}
	}
}

func TestSQL_HasEveryMigrationInTheOrderOfItsDirection(t *testing.T) {
	t.Parallel()
	sources, err := Sources()
	if err != nil {
		t.Fatal(err)
	}
	for _, down := range []bool{false, true} {
		script, err := SQL(down)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(script, "+goose") {
			t.Errorf("the script (down: %t) has annotations for goose", down)
		}
		var found []string
		for _, match := range regexp.MustCompile(`(?m)^-- (\d{5}_\w+)$`).FindAllStringSubmatch(script, -1) {
			found = append(found, match[1])
		}
		var want []string
		for _, source := range sources {
			want = append(want, source.Name)
		}
		if down {
			slices.Reverse(want)
		}
		if !slices.Equal(found, want) {
			t.Errorf("the script (down: %t) has %v, want %v", down, found, want)
		}
	}
}
