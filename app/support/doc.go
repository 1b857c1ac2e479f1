// Package support answers what a person on call asks: why does this job not run, who owns
// what, what is this worker doing. A report is one struct that every surface shows as it is,
// made of facts that package domain reads in one snapshot. It holds no SQL.
package support
