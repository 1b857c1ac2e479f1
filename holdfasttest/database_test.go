package holdfasttest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/holdfasttest"
)

func TestNewPool_EachTestHasADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	first, second := holdfasttest.NewPool(t), holdfasttest.NewPool(t)
	enqueue(t, first, sendReceipt{Email: "ada@example.com"})
	holdfasttest.RequireNotEnqueued[sendReceipt](t, second)
}

func TestNewPool_DatabaseGoesWithTheTest(t *testing.T) {
	t.Parallel()
	pool := holdfasttest.NewPool(t)
	var name string
	t.Run("a test", func(t *testing.T) {
		name = value[string](t, holdfasttest.NewPool(t), "SELECT current_database()")
	})
	if value[bool](t, pool, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = '"+name+"')") {
		t.Errorf("the database %s is left", name)
	}
}

func TestNewPool_SessionThatIsLeftOpenFailsTheTest(t *testing.T) {
	t.Parallel()
	var f *fake
	var forgotten *pgx.Conn
	t.Run("a test", func(t *testing.T) {
		f = &fake{TB: t}
		pool := holdfasttest.NewPool(f)
		var err error
		if forgotten, err = pgx.Connect(t.Context(), pool.Config().ConnString()); err != nil {
			t.Fatal(err)
		}
	})
	_ = forgotten.Close(t.Context())
	if said := f.said.String(); !strings.Contains(said, "1 sessions") || !strings.Contains(said, "wait until Run returns") {
		t.Errorf("the test was told %q", said)
	}
}

func TestMigrate_MakesTheSchemaInADatabaseOfTheUsers(t *testing.T) {
	t.Parallel()
	pool := holdfasttest.NewPool(t)
	execute(t, pool, "DROP SCHEMA holdfast CASCADE")
	for range 2 {
		holdfasttest.Migrate(t, pool.Config().ConnString())
	}
	enqueue(t, pool, sendReceipt{Email: "ada@example.com"})
	wantFailure(t, func(tb *fake) {
		holdfasttest.Migrate(tb, "postgres://ada:secret@:port")
	}, "cannot read the address")
}

// A process of its own, because the environment is read once.
func TestNewPool_UsesTheServerThatTheEnvironmentNames(t *testing.T) {
	t.Parallel()
	address := holdfasttest.NewPool(t).Config().ConnString()
	for _, test := range []struct{ address, says string }{
		{address, "PASS"},
		{"postgres://nobody@127.0.0.1:1/postgres", "prepare the server for tests"},
		{"host=127.0.0.1", "HOLDFAST_TEST_DATABASE_URL: the server's address must have the form"},
	} {
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNewPool_EachTestHasADatabaseOfItsOwn$", "-test.v")
		command.Env = append(os.Environ(), "HOLDFAST_TEST_DATABASE_URL="+test.address)
		output, _ := command.CombinedOutput()
		if !strings.Contains(string(output), test.says) {
			t.Errorf("with %s the tests say\n%s\nwant %q", test.address, output, test.says)
		}
	}
}
