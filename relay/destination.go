package relay

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/holdfast-pg/holdfast/domain"
)

// Destination is an address to publish to, taken apart. Unlike a URL it may name several hosts:
// kafka://user:password@one:9092,two:9092/orders?tls=true.
type Destination struct {
	Scheme   string
	User     string
	Password string
	Hosts    []string // With their ports, as they were written.
	Path     string   // Without the slash before it.
	Query    url.Values
}

// ParseDestination takes an address apart. Errors are an InvalidError, which never holds the
// address: it may hold a password.
func ParseDestination(address string) (Destination, error) {
	invalid := func(reason string) (Destination, error) {
		return Destination{}, &domain.InvalidError{Field: "destination", Reason: reason}
	}
	scheme, rest, isURL := strings.Cut(address, "://")
	if !isURL || scheme == "" {
		return invalid("is no URL, such as nats://host:4222/orders.{kind}")
	}
	authority, tail := rest, ""
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		authority, tail = rest[:end], rest[end:]
	}
	// The hosts are taken out: several of them are no URL.
	user, hosts, hasUser := strings.Cut(authority, "@")
	if !hasUser {
		user, hosts = "", authority
	}
	if strings.Contains(hosts, "@") {
		return invalid("has an @ in its host: in a user name or a password write %40 for @")
	}
	if strings.Contains(tail, "@") && !hasUser {
		return invalid("has an @ behind its host: in a user name or a password write %40 for @, %2F for / and %3F for ?")
	}
	parsed, err := url.Parse(scheme + "://" + user + "@host" + tail)
	if err != nil {
		return invalid("cannot be read: write it as scheme://user:password@host:port/path")
	}
	if hosts == "" {
		return invalid("names no host")
	}
	destination := Destination{
		Scheme: strings.ToLower(scheme), User: parsed.User.Username(), Hosts: strings.Split(hosts, ","),
		Path: strings.TrimPrefix(parsed.Path, "/"), Query: parsed.Query(),
	}
	destination.Password, _ = parsed.User.Password()
	return destination, nil
}

// Masked shows where a destination is, without what may be a secret: the password and the
// parameters.
func (d Destination) Masked() string {
	user := ""
	switch {
	case d.Password != "":
		user = url.User(d.User).String() + ":***@"
	case d.User != "":
		user = url.User(d.User).String() + "@"
	}
	return d.Scheme + "://" + user + strings.Join(d.Hosts, ",") + "/" + d.Path
}

// Take returns a parameter and removes it; "" for one that is not there.
func (d Destination) Take(name string) string {
	value := d.Query.Get(name)
	d.Query.Del(name)
	return value
}

// CheckTaken refuses what no publisher has taken: a parameter with a slip in its name would be
// ignored for ever.
func (d Destination) CheckTaken(known ...string) error {
	for name := range d.Query {
		return &domain.InvalidError{Field: "destination", Reason: fmt.Sprintf("%s knows no parameter %.40q; it knows: %s", d.Scheme, name, strings.Join(known, ", "))}
	}
	return nil
}

// Expand puts a message's queue, kind and key in the places {queue}, {kind} and {key} of a
// template, each as fit makes it.
func Expand(template string, message Message, fit func(string) string) string {
	if !strings.Contains(template, "{") {
		return template
	}
	return strings.NewReplacer("{queue}", fit(message.Queue), "{kind}", fit(message.Kind), "{key}", fit(message.Key)).Replace(template)
}
