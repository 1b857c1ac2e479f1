package domain

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestCheckName_TakesWhatATextColumnTakes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		name  string
		valid bool
	}{
		"empty":                    {"", false},
		"one character":            {"a", true},
		"200 characters":           {strings.Repeat("a", 200), true},
		"201 characters":           {strings.Repeat("a", 201), false},
		"200 characters, 800 byte": {strings.Repeat("🐘", 200), true},
		"201 characters, 804 byte": {strings.Repeat("🐘", 201), false},
		"a backslash":              {`a\b`, true},
		"a line break":             {"a\nb", true},
		"NUL":                      {"a\x00b", false},
		"not UTF-8":                {"a\xff", false},
		"half a character":         {"a\xf0\x9f", false},
		"a replacement character":  {"\uFFFD", true},
	}
	for name, test := range tests {
		err := checkName("key", test.name)
		if (err == nil) != test.valid {
			t.Errorf("%s: %v", name, err)
		}
		if invalid := (*InvalidError)(nil); err != nil && (!errors.As(err, &invalid) || invalid.Field != "key") {
			t.Errorf("%s: %v, want an InvalidError of the key", name, err)
		}
	}
}

func TestHasEscapedNUL_MindsTheBackslashBefore(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]bool{
		``:                     false,
		`""`:                   false,
		`"\u0000"`:             true,
		`"a\u0000b"`:           true,
		`{"\u0000":1}`:         true,
		`"\\u0000"`:            false, // A backslash, then u0000.
		`"\\\u0000"`:           true,  // A backslash, then NUL.
		`"\\\\u0000"`:          false,
		`"\"\u0000"`:           true,
		`"\u00000"`:            true,
		`"\u0001"`:             false,
		`"\u000"`:              false,
		`"u0000"`:              false,
		`"\n\u0000"`:           true,
		`\`:                    false,
		`\u000`:                false,
		`\u0000`:               true,
		`"\\\\\\\\\\\\\u0000"`: true,
	} {
		if got := hasEscapedNUL([]byte(document)); got != want {
			t.Errorf("hasEscapedNUL(%s) = %t", document, got)
		}
	}
}

func TestHasEscapedNUL_FindsWhatEncodingWrites(t *testing.T) {
	t.Parallel()
	text := rapid.StringOf(rapid.RuneFrom([]rune{0, '\\', 'u', '0', '"', 'é'}))
	rapid.Check(t, func(t *rapid.T) {
		value := text.Draw(t, "text")
		document, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if got := hasEscapedNUL(document); got != strings.ContainsRune(value, 0) {
			t.Fatalf("hasEscapedNUL(%s) = %t", document, got)
		}
	})
}

func TestCleanErrorText_KeepsWhatItCan(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"empty":                     {"", ""},
		"plain":                     {"no answer", "no answer"},
		"NUL goes":                  {"\x00a\x00\x00b\x00", "ab"},
		"only NUL":                  {"\x00\x00", ""},
		"stray bytes are replaced":  {"a\xff\xfeb\x80", "a\uFFFDb\uFFFD"},
		"NUL inside of a character": {"\xe2\x00\x82\xac", "€"},
		"exactly at the limit":      {strings.Repeat("x", errorTextLimit), strings.Repeat("x", errorTextLimit)},
		"10 MB":                     {strings.Repeat("x", 10<<20), strings.Repeat("x", errorTextLimit)},
		"10 MB of NUL":              {strings.Repeat("\x00", 10<<20), ""},
		// 8192 = 3 × 2730 + 2: the cut leaves two bytes, for whose replacement is no room.
		"cut inside of a character": {strings.Repeat("€", 4000), strings.Repeat("€", 2730)},
		"stray bytes that grow":     {strings.Repeat("\xffa", errorTextLimit), strings.Repeat("\uFFFDa", errorTextLimit/4)},
	}
	for name, test := range tests {
		if got := cleanErrorText(test.text); got != test.want {
			t.Errorf("%s: got %d bytes %.40q, want %d bytes %.40q", name, len(got), got, len(test.want), test.want)
		}
	}
}

func TestCleanErrorText_IsAlwaysFitForTheColumn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		piece := string(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "piece")) + rapid.String().Draw(t, "tail")
		text := strings.Repeat(piece, rapid.IntRange(0, 600).Draw(t, "times"))
		got := cleanErrorText(text)
		if len(got) > errorTextLimit || !utf8.ValidString(got) || strings.ContainsRune(got, 0) {
			t.Fatalf("%d bytes, valid %t: %.40q", len(got), utf8.ValidString(got), got)
		}
		if cleanErrorText(got) != got {
			t.Fatalf("a clean text changed: %.40q", got)
		}
	})
}
