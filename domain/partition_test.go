package domain

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What holdfast.bucket_of answers. Rows keep their bucket for ever, so none of these may change.
func TestBucketOf_IsFrozen(t *testing.T) {
	t.Parallel()
	tests := []struct {
		key     string
		of2     int
		of1024  int
		of1000  int
		of16384 int
	}{
		{"", 0, 196, 924, 12484},
		{"a", 1, 897, 57, 6017},
		{"order:9182", 1, 999, 535, 12263},
		{"customer:42", 1, 555, 203, 12843},
		{`back\slash`, 0, 224, 856, 6368},
		{"ключ", 0, 874, 762, 9066},
		{"🐘", 1, 513, 713, 12801},
	}
	for _, test := range tests {
		for count, want := range map[int]int{1: 0, 2: test.of2, 1024: test.of1024, 1000: test.of1000, 16384: test.of16384} {
			if got := BucketOf(test.key, count); got != want {
				t.Errorf("BucketOf(%q, %d) = %d, want %d", test.key, count, got, want)
			}
		}
	}
	if got := BucketOf(strings.Repeat("x", nameLimit), 1024); got != 194 {
		t.Errorf("BucketOf(200 times x, 1024) = %d, want 194", got)
	}
}

func TestBucketOf_StaysInRange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 16384).Draw(t, "count")
		if bucket := BucketOf(rapid.String().Draw(t, "key"), count); bucket < 0 || bucket >= count {
			t.Fatalf("bucket %d of %d", bucket, count)
		}
	})
}
