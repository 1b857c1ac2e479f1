package holdfast_test

import (
	"os"
	"testing"

	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

func TestMain(m *testing.M) {
	os.Exit(pgtest.Main(m))
}
