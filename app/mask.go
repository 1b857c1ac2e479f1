package app

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// What stands in the place of a secret, and of an address that cannot be read.
const (
	Masked   = "***"
	NotValid = "not valid"
)

// MaskURL shows which database an address leads to: user, hosts and database, as the driver
// reads them, also from the environment. It is put together anew, so that a password cannot
// pass, wherever it stands. Parameters are left out. NotValid for what Connect refuses.
func MaskURL(address string) string {
	config, err := pgxpool.ParseConfig(address)
	if err != nil || hasStrayAt(address) {
		return NotValid
	}
	conn := config.ConnConfig
	user := url.User(conn.User).String()
	if conn.Password != "" {
		user += ":" + Masked
	}
	return fmt.Sprintf("postgres://%s@%s/%s", user, strings.Join(hosts(&conn.Config), ","), url.PathEscape(conn.Database))
}

// hosts are the addresses that the driver tries, each once.
func hosts(config *pgconn.Config) []string {
	all := []string{hostPort(config.Host, config.Port)}
	for _, fallback := range config.Fallbacks {
		if next := hostPort(fallback.Host, fallback.Port); !slices.Contains(all, next) {
			all = append(all, next)
		}
	}
	return all
}

func hostPort(host string, port uint16) string {
	if strings.HasPrefix(host, "/") {
		return host // The folder of a socket.
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}
