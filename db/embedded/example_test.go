//go:build unix && !aix && !solaris

package embedded_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/db/embedded"
)

func ExampleStart() {
	ctx := context.Background()
	server, err := embedded.Start(ctx, embedded.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Stop()

	conn, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close(ctx)

	var superuser string
	if err := conn.QueryRow(ctx, `SHOW is_superuser`).Scan(&superuser); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("superuser:", superuser)
	// Output: superuser: on
}
