// Package app is the process around the library: which database, what kind of log, how a
// program on the command line becomes a handler. It holds no SQL and no rule of the queue.
package app
