package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	natsio "github.com/nats-io/nats.go"
	"github.com/twmb/franz-go/pkg/kgo"
	saslplain "github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/app"
	"github.com/holdfast-pg/holdfast/relay"
	"github.com/holdfast-pg/holdfast/relay/http"
	"github.com/holdfast-pg/holdfast/relay/inbox"
	"github.com/holdfast-pg/holdfast/relay/kafka"
	"github.com/holdfast-pg/holdfast/relay/nats"
)

// envRelayTo is the environment variable that names the destination of a relay.
const envRelayTo = "HOLDFAST_RELAY_TO"

// destination is where a relay publishes to.
type destination struct {
	masked string // For people.
	open   func(ctx context.Context) (relay.Publisher, error)
}

// schemes are the destinations that there are, in the order of the help.
var schemes = []struct {
	names []string
	help  string
	read  func(address string, parsed relay.Destination) (destination, error)
}{
	{[]string{"nats"}, "nats://USER:PASSWORD@HOST:PORT/SUBJECT: NATS JetStream; SUBJECT is {queue}.{kind}; ?tls=true ?creds=FILE", readNATS},
	{[]string{"https", "http"}, "https://HOST/PATH: CloudEvents over HTTP; ?ce_mode=structured; other parameters are sent along", readHTTP},
	{[]string{"postgres", "postgresql"}, "postgres://…/DATABASE: the inbox of another database; ?queue=NAME, the same queue by default", readPostgres},
	{[]string{"kafka"}, "kafka://USER:PASSWORD@HOST:PORT/TOPIC: Kafka; TOPIC is {queue}; ?tls=true ?sasl=plain|scram-sha-256|scram-sha-512 ?max_bytes=N", readKafka},
}

func destinationHelp() string {
	lines := make([]string, len(schemes))
	for i, scheme := range schemes {
		lines[i] = "  " + scheme.help
	}
	return strings.Join(lines, "\n")
}

// chosenDestination reads the address that the command line or the environment gives. Nothing is
// connected to.
func chosenDestination(c *cli.Context) (destination, error) {
	address := cmp.Or(c.String(flagTo), os.Getenv(envRelayTo))
	if address == "" {
		return destination{}, usage("--to URL is missing: where to publish, such as nats://host:4222; or set %s", envRelayTo)
	}
	return readDestination(address)
}

func readDestination(address string) (destination, error) {
	name, _, _ := strings.Cut(address, "://")
	var known []string
	for _, scheme := range schemes {
		for _, other := range scheme.names {
			if !strings.EqualFold(name, other) {
				known = append(known, other+"://")
				continue
			}
			parsed, err := relay.ParseDestination(address)
			if err != nil {
				return destination{}, err
			}
			return scheme.read(address, parsed)
		}
	}
	if !strings.Contains(address, "://") {
		return destination{}, usage("--to is no URL; the known schemes are %s", strings.Join(known, ", "))
	}
	return destination{}, usage("--to: unknown scheme %.40q; the known ones are %s", name+"://", strings.Join(known, ", "))
}

func openDestination(c *cli.Context) (relay.Publisher, error) {
	chosen, err := chosenDestination(c)
	if err != nil {
		return nil, err
	}
	return chosen.open(c.Context)
}

// maskDestination shows where an address leads to, without secrets.
func maskDestination(address string) string {
	chosen, err := readDestination(address)
	if err != nil {
		return app.NotValid
	}
	return chosen.masked
}

func readNATS(_ string, parsed relay.Destination) (destination, error) {
	secure, creds := parsed.Take("tls"), parsed.Take("creds")
	if err := parsed.CheckTaken("tls", "creds"); err != nil {
		return destination{}, err
	}
	return destination{masked: parsed.Masked(), open: func(context.Context) (relay.Publisher, error) {
		config := nats.Config{URL: "nats://" + strings.Join(parsed.Hosts, ",nats://"), Subject: parsed.Path}
		if parsed.User != "" {
			// A user without a password is a token, as in NATS's own addresses.
			config.Options = append(config.Options, natsio.UserInfo(parsed.User, parsed.Password))
			if parsed.Password == "" {
				config.Options = []natsio.Option{natsio.Token(parsed.User)}
			}
		}
		if creds != "" {
			config.Options = append(config.Options, natsio.UserCredentials(creds))
		}
		if secure == "true" {
			config.Options = append(config.Options, natsio.Secure())
		}
		return asPublisher(nats.New(config))
	}}, nil
}

func readHTTP(address string, parsed relay.Destination) (destination, error) {
	mode := parsed.Take("ce_mode")
	if mode != "" && mode != "binary" && mode != "structured" {
		return destination{}, usage("--to: ce_mode %.40q is none of binary, structured", mode)
	}
	if len(parsed.Hosts) > 1 {
		return destination{}, usage("--to: HTTP takes one host")
	}
	target, _, _ := strings.Cut(address, "?")
	if rest := parsed.Query.Encode(); rest != "" {
		target += "?" + rest
	}
	return destination{masked: parsed.Masked(), open: func(context.Context) (relay.Publisher, error) {
		return http.New(http.Config{URL: target, Structured: mode == "structured"}), nil
	}}, nil
}

func readPostgres(address string, parsed relay.Destination) (destination, error) {
	queue := parsed.Take("queue")
	target, _, _ := strings.Cut(address, "?")
	if rest := parsed.Query.Encode(); rest != "" {
		target += "?" + rest
	}
	masked := app.MaskURL(target)
	if masked == app.NotValid {
		return destination{}, fmt.Errorf("--to: %w", app.ErrInvalidURL)
	}
	if queue != "" {
		masked += "?queue=" + url.QueryEscape(queue)
	}
	return destination{masked: masked, open: func(ctx context.Context) (relay.Publisher, error) {
		pool, err := app.Destination(ctx, target)
		if err != nil {
			return nil, fmt.Errorf("--to: %w", err)
		}
		return inbox.New(pool, queue), nil
	}}, nil
}

func readKafka(_ string, parsed relay.Destination) (destination, error) {
	config := kafka.Config{Brokers: parsed.Hosts, Topic: parsed.Path}
	if most := parsed.Take("max_bytes"); most != "" {
		bytes, err := strconv.Atoi(most)
		if err != nil || bytes < 1000 {
			return destination{}, usage("--to: max_bytes %.40q is no number of bytes", most)
		}
		config.MaxBytes = bytes
	}
	switch mechanism := parsed.Take("sasl"); {
	case mechanism == "plain" || mechanism == "" && parsed.User != "":
		config.Options = append(config.Options, kgo.SASL(saslplain.Auth{User: parsed.User, Pass: parsed.Password}.AsMechanism()))
	case mechanism == "scram-sha-256":
		config.Options = append(config.Options, kgo.SASL(scram.Auth{User: parsed.User, Pass: parsed.Password}.AsSha256Mechanism()))
	case mechanism == "scram-sha-512":
		config.Options = append(config.Options, kgo.SASL(scram.Auth{User: parsed.User, Pass: parsed.Password}.AsSha512Mechanism()))
	case mechanism != "":
		return destination{}, usage("--to: sasl %.40q is none of plain, scram-sha-256, scram-sha-512", mechanism)
	}
	if parsed.Take("tls") == "true" {
		config.Options = append(config.Options, kgo.DialTLSConfig(&tls.Config{MinVersion: tls.VersionTLS12}))
	}
	if err := parsed.CheckTaken("tls", "sasl", "max_bytes"); err != nil {
		return destination{}, err
	}
	return destination{masked: parsed.Masked(), open: func(context.Context) (relay.Publisher, error) {
		return asPublisher(kafka.New(config))
	}}, nil
}

// asPublisher keeps a nil of a publisher's own type from looking like one that is there.
func asPublisher[P relay.Publisher](publisher P, err error) (relay.Publisher, error) {
	if err != nil {
		return nil, err
	}
	return publisher, nil
}
