//go:build !unix || aix || solaris

package embedded

import (
	"strings"
	"testing"
)

func TestStart_SaysThatThisSystemIsNotSupported(t *testing.T) {
	if _, err := Start(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "--database-url") {
		t.Errorf("%v, want an error that names the way out", err)
	}
}
