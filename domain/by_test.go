package domain

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestActorOn_IsAlwaysAnActor(t *testing.T) {
	t.Parallel()
	for name, host := range map[string]string{"anna": "ops-1", "": "", strings.Repeat("ä", 300): "h", "a\x00\xff": "h\xfe"} {
		actor := ActorOn(name, host)
		if _, err := (By{Actor: actor}).Check(); err != nil {
			t.Errorf("%q on %q: %v", name, host, err)
		}
	}
	if actor := ActorOn("anna", "ops-1"); actor != "anna@ops-1" {
		t.Errorf("anna is %q", actor)
	}
	if length := utf8.RuneCountInString(ActorOn(strings.Repeat("ä", 300), "h")); length != 200 {
		t.Errorf("a long name has %d characters", length)
	}
}

func TestThisProgram_IsAnActor(t *testing.T) {
	t.Parallel()
	if _, err := ThisProgram().Check(); err != nil {
		t.Error(err)
	}
}
