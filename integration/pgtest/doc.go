// Package pgtest gives every test a Postgres database of its own, cloned from a migrated
// template, and drops it when the test ends. Tests may run in parallel.
//
// A package whose tests need it has one TestMain:
//
//	func TestMain(m *testing.M) {
//		os.Exit(pgtest.Main(m))
//	}
//
// and its tests look like this:
//
//	func TestFenced_StaleWorkerCannotComplete(t *testing.T) {
//		t.Parallel()
//		database := pgtest.New(t)
//		queue := database.Queue(t) // Closed when the test ends.
//
//		result, err := domain.Enqueue(t.Context(), database.Pool, args)
//		...
//		database.ExpireLease(t, result.ID)
//		database.EndWait(t, result.ID)
//		n := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox")
//		pgtest.Eventually(t, 5*time.Second, "the job is completed", func() bool { ... })
//		database.Executed("ClaimJobs") // How often this database ran the query.
//	}
//
// # The server
//
// All databases of a test run are on one server. The environment chooses it:
//
//   - HOLDFAST_TEST_DATABASE_URL: a running server, as a user who may create databases.
//   - HOLDFAST_TEST_POSTGRES: "container" or "embedded". Without it: a container when a
//     Docker engine answers within two seconds and has the image or can pull it, else the
//     embedded server.
//   - HOLDFAST_TEST_POSTGRES_IMAGE: the container's image; default postgres:18-alpine.
//   - HOLDFAST_TEST_POSTGRES_VERSION: the major version of the embedded server, 14 to 18. No
//     container is tried then. Default: the one the machine has, else a download.
//
// Main prints which server it is and why. Without a server the run fails; it never skips.
//
// A test that restarts its server has one of its own, from Alone.
//
// # The pooler
//
// HOLDFAST_TEST_POOLER names a program, PgBouncer 1.18 or later or a script that ends in exec
// of one. Main runs it in transaction mode in front of the server, and a test's URL, Pool and
// Queue lead through it: the tests of the promises hold there (make promises POOLER=…). From
// PgBouncer 1.21 on the pool uses prepared statements, before that pgx's cached descriptions,
// which the URL asks for.
//
// What needs a session goes past it: Config, Conn, DirectURL and Direct, and the making and
// dropping of databases. Other tests of this tree, such as those of migrations and of the
// command line, are not meant to run through it.
//
// Main prints the pooler's version, and at the end in how many databases it ran a transaction.
package pgtest
