package app

import (
	"cmp"
	"errors"
	"os"
)

// The environment variables that name the database, first one first.
const (
	EnvDatabaseURL        = "HOLDFAST_DATABASE_URL"
	EnvGenericDatabaseURL = "DATABASE_URL"
)

// EnvReadURL is the environment variable that names a replica for commands that only read.
const EnvReadURL = "HOLDFAST_READ_URL"

// ReadURL returns the replica to read from: the flag's value, else that of the environment,
// else "" for none.
func ReadURL(flag string) string {
	return cmp.Or(flag, os.Getenv(EnvReadURL))
}

// ErrNoDatabase says that nobody named a database.
var ErrNoDatabase = errors.New("no database given: use --database-url, or set " + EnvDatabaseURL + " or " + EnvGenericDatabaseURL)

// DatabaseURL returns the database to use: the flag's value, else that of the environment.
// ErrNoDatabase without either: a program that guesses writes to the wrong database one day.
func DatabaseURL(flag string) (string, error) {
	for _, url := range []string{flag, os.Getenv(EnvDatabaseURL), os.Getenv(EnvGenericDatabaseURL)} {
		if url != "" {
			return url, nil
		}
	}
	return "", ErrNoDatabase
}
