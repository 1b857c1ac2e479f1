package bench

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestDatabase_AnotherOneIsOnTheSameServerAsTheSameRole(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"postgres://u:p%40ss@h:5433/shop?sslmode=disable",
		"postgresql://u:p%40ss@h:5433?sslmode=disable",
		"postgres://u:p%40ss@h:5433/?dbname=shop&sslmode=disable",
		"host=h port=5433 user=u password=p@ss dbname=shop sslmode=disable",
	} {
		other, err := withDatabase(address, "holdfast_bench_x")
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		config, err := pgx.ParseConfig(other)
		if err != nil {
			t.Errorf("%s became %s: %v", address, other, err)
			continue
		}
		if config.Database != "holdfast_bench_x" || config.Host != "h" || config.Port != 5433 || config.User != "u" || config.Password != "p@ss" || config.TLSConfig != nil {
			t.Errorf("%s became %s", address, other)
		}
	}
}
