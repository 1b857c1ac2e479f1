package app

import (
	"strings"
	"testing"
)

const canary = "canary"

// However the password of an address is written, no error holds it, and neither does anything
// that a failing connection would print: host, user, database and parameters.
func FuzzOpenPool_NothingPrintedHoldsThePassword(f *testing.F) {
	for shape := range len(addresses) {
		f.Add(uint8(shape), "", "", "127.0.0.1:1/db")
		f.Add(uint8(shape), "12/", "", "h/db")
		f.Add(uint8(shape), "12?", "", "h/db")
		f.Add(uint8(shape), "#", "@", "[::1/db")
		f.Add(uint8(shape), "a b='", "`: ", "h:port/db?sslmode=nosuch")
		f.Add(uint8(shape), "/", " ", "0")
		f.Add(uint8(shape), "/", "", "%")
		f.Add(uint8(shape), "", "@", "")
		f.Add(uint8(shape), "@", "", ":")
		f.Add(uint8(shape), "%zz", "&x=", "h/db?pool_max_conns=nosuch")
	}
	f.Fuzz(func(t *testing.T, shape uint8, before, after, rest string) {
		if strings.Contains(rest, canary) || strings.ContainsAny(before, "@") && shape%uint8(len(addresses)) == 0 {
			return
		}
		url := addresses[shape%uint8(len(addresses))](before+canary+after, rest)
		if masked := MaskURL(url); strings.Contains(masked, canary) {
			t.Fatalf("%q is shown as %s", url, masked)
		}
		pool, err := openPool(t.Context(), url)
		if err != nil {
			if strings.Contains(err.Error(), canary) {
				t.Fatalf("%q: %v", url, err)
			}
			return
		}
		defer pool.Close()
		config := pool.Config().ConnConfig
		for _, printed := range []string{config.Host, config.User, config.Database} {
			if strings.Contains(printed, canary) {
				t.Fatalf("%q leads to host %q, user %q, database %q", url, config.Host, config.User, config.Database)
			}
		}
	})
}

var addresses = []func(password, rest string) string{
	func(password, rest string) string { return "postgres://u:" + password + "@" + rest },
	func(password, rest string) string { return "u:" + password + "@" + rest },
	func(password, rest string) string { return "postgres://" + rest + "?user=u&password=" + password },
	func(password, rest string) string { return "user=u password=" + password + " host=" + rest },
	func(password, rest string) string { return "host=127.0.0.1 password='" + password + "' " + rest },
}
