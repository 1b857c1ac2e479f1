package relay

import (
	"strings"
	"testing"
)

func TestDestination_IsTakenApartAndShownWithoutSecrets(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"nats://host:4222": "nats://host:4222/",
		"NATS://user:pa%40ss@one:4222,two:4222/orders.{kind}": "nats://user:***@one:4222,two:4222/orders.{kind}",
		"https://host/hook?token=secret":                      "https://host/hook",
		"kafka://user@host:9092/topic?tls=true":               "kafka://user@host:9092/topic",
	} {
		got, err := ParseDestination(address)
		if err != nil || got.Masked() != want {
			t.Errorf("%s: %q, %v, want %q", address, got.Masked(), err, want)
		}
	}
	got, err := ParseDestination("kafka://user:pa%40ss@one:9092,two:9092/topic?tls=true")
	if err != nil || got.Password != "pa@ss" || len(got.Hosts) != 2 || got.Take("tls") != "true" || got.CheckTaken() != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestDestination_BadOnesAreRefusedWithoutTheirSecrets(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "host", "nats://", "://host", "nats://user:se@cret@host", "nats://user:se/cret@host", "nats://user:%zzsecret@host"} {
		if got, err := ParseDestination(address); err == nil || strings.Contains(err.Error(), "cret") {
			t.Errorf("%q is %+v, %v", address, got, err)
		}
	}
	destination, err := ParseDestination("nats://host?secrett=x")
	if err != nil {
		t.Fatal(err)
	}
	if err := destination.CheckTaken("tls"); err == nil || !strings.Contains(err.Error(), `"secrett"`) {
		t.Errorf("a parameter with a slip: %v", err)
	}
}
