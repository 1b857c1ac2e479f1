package main

import (
	"net"
	"strings"
	"testing"
)

// canary is the password of every URL below. No part of it may be printed.
const canary = "canary"

func TestPassword_IsNotInTheMessageWhenTheDatabaseCannotBeReached(t *testing.T) {
	for name, url := range map[string]string{
		"refused port":          "postgres://u:canary@127.0.0.1:1/db",
		"unknown host":          "postgres://u:canary@nosuch.invalid/db",
		"silent server":         "postgres://u:canary@" + silentServer(t) + "/db",
		"password in the query": "postgres://127.0.0.1:1/db?user=u&password=canary",
		"keywords":              "host=127.0.0.1 port=1 user=u password=canary",
		"question mark":         "postgres://u:canary?canary@127.0.0.1:1/db",
		"hash":                  "postgres://u:canary#canary@127.0.0.1:1/db",
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t, "migrate", "status", "--connect-timeout", "300ms", "--log-level", "debug", "--database-url", url)
			if got.code != exitUnreachable || !strings.Contains(got.stderr, "the database cannot be reached: ") {
				t.Errorf("exit code %d: %s", got.code, got.stderr)
			}
			if strings.Contains(got.stdout+got.stderr, canary) {
				t.Errorf("the password is printed: %s", got.stderr)
			}
		})
	}
}

func TestPassword_IsNotInTheMessageWhenTheURLIsMalformed(t *testing.T) {
	for name, url := range map[string]string{
		"no scheme":               "u:canary@127.0.0.1/db",
		"other scheme":            "mysql://u:canary@127.0.0.1/db",
		"port too high":           "postgres://u:canary@127.0.0.1:99999/db",
		"port is a word":          "postgres://u:canary@127.0.0.1:port/db",
		"open bracket":            "postgres://u:canary@[::1/db",
		"unknown sslmode":         "postgres://u:canary@127.0.0.1:1/db?sslmode=nosuch",
		"pool setting":            "postgres://u:canary@127.0.0.1:1/db?pool_max_conns=nosuch",
		"percent in the password": "postgres://u:canary%zz@127.0.0.1:1/db",
		"space in the password":   "postgres://u:canary canary@127.0.0.1:1/db",
		"slash and space":         "postgres://u:/canary @127.0.0.1:1/db",
		"slash and percent":       "postgres://u:/canary@%",
		"at in a parameter":       "postgres://?user=u&password=canary@",
		"slash in the password":   "postgres://u:canary/canary@127.0.0.1:1/db",
		"digits before the slash": "postgres://u:12/canary@127.0.0.1:1/db",
		"at in the password":      "postgres://u:p@canary@127.0.0.1:1/db",
		"backquote":               "postgres://u:ca`: canary@127.0.0.1:port/db",
		"keywords":                "host=127.0.0.1 port=nosuch password=canary",
		"open quote":              "host=127.0.0.1 password='canary canary",
		"quote in the password":   "host=127.0.0.1 password='a'canary b' user=u",
		"space in a keyword":      "host=127.0.0.1 password=a canary user=u",
	} {
		t.Run(name, func(t *testing.T) {
			for _, line := range []string{"migrate status", "work --exec true"} {
				got := execute(t, append(strings.Fields(line), "--log-level", "debug", "--database-url", url)...)
				got.refused(t, "the database URL is not valid: ")
				if strings.Contains(got.stdout+got.stderr, canary) {
					t.Errorf("the password is printed: %s", got.stderr)
				}
			}
		})
	}
}

// silentServer takes connections and never answers.
func silentServer(t *testing.T) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}
