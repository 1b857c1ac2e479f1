package embedding

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	entdialect "entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/holdfast-pg/holdfast/holdfasttest"
)

// ways are how a service may place an order.
func ways(t *testing.T, pool *pgxpool.Pool) map[string]func(ctx context.Context, order int64) error {
	t.Helper()
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	orm, err := gorm.Open(postgres.New(postgres.Config{Conn: db}), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]func(ctx context.Context, order int64) error{
		"pgx":          func(ctx context.Context, order int64) error { return placeWithPgx(ctx, pool, order) },
		"sqlc":         func(ctx context.Context, order int64) error { return placeWithSqlc(ctx, pool, order) },
		"database/sql": func(ctx context.Context, order int64) error { return placeWithSQL(ctx, db, order) },
		"sqlx":         func(ctx context.Context, order int64) error { return placeWithSqlx(ctx, sqlx.NewDb(db, "pgx"), order) },
		"GORM":         func(ctx context.Context, order int64) error { return placeWithGorm(ctx, orm, order) },
		"bun": func(ctx context.Context, order int64) error {
			return placeWithBun(ctx, bun.NewDB(db, pgdialect.New()), order)
		},
		"ent": func(ctx context.Context, order int64) error {
			return placeWithEnt(ctx, entsql.OpenDB(entdialect.Postgres, db), order)
		},
	}
}

func TestEmbedding_JobAndOrderAreThereTogetherOrNotAtAll(t *testing.T) {
	pool := holdfasttest.NewPool(t)
	if _, err := pool.Exec(t.Context(), "CREATE TABLE orders (id bigint PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	order := int64(0)
	for name, place := range ways(t, pool) {
		order++
		t.Run(name, func(t *testing.T) {
			if err := place(t.Context(), order); err != nil {
				t.Fatal(err)
			}
			holdfasttest.RequireEnqueued(t, pool, SendReceipt{order})
			if place(t.Context(), order) == nil {
				t.Error("the order was placed twice")
			}
			if n := len(holdfasttest.Enqueued[SendReceipt](t, pool)); n != int(order) {
				t.Errorf("%d jobs after %d orders", n, order)
			}
			// A job that is refused takes the order with it.
			if _, err := pool.Exec(t.Context(), "ALTER TABLE holdfast.inbox RENAME TO elsewhere"); err != nil {
				t.Fatal(err)
			}
			if place(t.Context(), order+1000) == nil {
				t.Error("an order was placed whose job could not be enqueued")
			}
			if _, err := pool.Exec(t.Context(), "ALTER TABLE holdfast.elsewhere RENAME TO inbox"); err != nil {
				t.Fatal(err)
			}
			var orders int64
			if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM orders").Scan(&orders); err != nil || orders != order {
				t.Errorf("%d orders, want %d: %v", orders, order, err)
			}
		})
	}
	if busy, err := isBusy(t.Context(), pool); busy || err != nil {
		t.Errorf("busy: %t, %v", busy, err)
	}
}

var codeBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// What the page shows is what is compiled and run here.
func TestEmbedding_PageQuotesTheseFiles(t *testing.T) {
	page, err := os.ReadFile("../../docs/embedding.md")
	if err != nil {
		t.Fatal(err)
	}
	var sources strings.Builder
	for _, file := range []string{"embedding", "pgx", "databasesql", "sqlx", "gorm", "bun", "ent", "store"} {
		source, err := os.ReadFile(file + ".go")
		if err != nil {
			t.Fatal(err)
		}
		sources.Write(source)
	}
	blocks := codeBlock.FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 9 {
		t.Errorf("%d blocks, want one for each way, and the job", len(blocks))
	}
	for _, block := range blocks {
		if !strings.Contains(sources.String(), block[1]) {
			t.Errorf("no file has:\n%s", block[1])
		}
	}
}
