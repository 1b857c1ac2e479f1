package domain

import (
	"errors"
	"testing"
)

func TestMeta_ProgramAndSchemaMustGoTogether(t *testing.T) {
	t.Parallel()
	const binary = 6
	tests := map[string]struct {
		schema, oldest int
		fits           bool
	}{
		"the same version":                  {6, 6, true},
		"a later schema that takes us":      {9, 5, true},
		"an earlier schema":                 {5, 5, false},
		"a later schema that refuses us":    {9, 7, false},
		"a later schema that just takes us": {9, 6, true},
	}
	for name, test := range tests {
		err := Meta{SchemaVersion: test.schema, OldestBinary: test.oldest}.check(binary)
		if (err == nil) != test.fits {
			t.Errorf("%s: %v", name, err)
		}
		var mismatch *SchemaError
		if err != nil && (!errors.As(err, &mismatch) || mismatch.Schema != test.schema || mismatch.Binary != binary || mismatch.Remedy == "") {
			t.Errorf("%s: %v, want a SchemaError that names both versions", name, err)
		}
	}
}
