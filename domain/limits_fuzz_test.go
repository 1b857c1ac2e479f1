package domain

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Whatever a handler's error says, up to many megabytes, its text fits the column, and what is
// left is a beginning of what it said.
func FuzzErrorText_IsFitForTheColumn(f *testing.F) {
	f.Add("no answer", 1)
	f.Add("\x00a\xff€", 3)
	f.Add("\xe2\x00\x82\xac", 2731)
	f.Add("0123456789", 1<<20)
	f.Fuzz(func(t *testing.T, piece string, times int) {
		whole := strings.Repeat(piece, min(max(times, 0), 10<<20/max(len(piece), 1)))
		text := cleanErrorText(whole)
		if len(text) > errorTextLimit || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			t.Fatalf("%d bytes, valid %t: %.40q", len(text), utf8.ValidString(text), text)
		}
		head := whole[:min(len(whole), 4*errorTextLimit)]
		readable := strings.ReplaceAll(strings.ToValidUTF8(strings.ReplaceAll(head, "\x00", ""), "\uFFFD"), "\uFFFD", "")
		if kept := strings.ReplaceAll(text, "\uFFFD", ""); len(whole) <= len(head) && !strings.HasPrefix(readable, kept) {
			t.Fatalf("%.40q became %.40q", readable, kept)
		}
	})
}
