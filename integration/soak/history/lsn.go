package history

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseLSN reads a position of the server's log, such as 16/B374D848, as a number in the order
// of the log.
func ParseLSN(text string) (uint64, error) {
	high, low, found := strings.Cut(text, "/")
	above, err := strconv.ParseUint(high, 16, 32)
	below, err2 := strconv.ParseUint(low, 16, 32)
	if !found || err != nil || err2 != nil {
		return 0, fmt.Errorf("%.60q is no LSN", text)
	}
	return above<<32 | below, nil
}
