package main

import "slices"

// mutant is a bug that is planted to see a test find it.
type mutant struct {
	name    string // What the product then does wrong, in plain words.
	promise string // What it breaks, as docs/guarantees.md calls it.
	file    string // From the root of the module, as are folders.
	old     string // Stands in the file exactly once.
	new     string
	folder  string // Where the test is.
	test    string // The one that must go red.
	flag    string // What else the test binary is told, if anything.
	short   bool   // It is one of the few that -short plants.
}

// Where tests are.
const (
	onPostgres = "integration"
	inWorker   = "worker"
	inDomain   = "domain"
	inJudge    = "integration/soak/judge"
)

// mutants returns the table, in the order of the promises.
func mutants() []mutant {
	return slices.Concat(ofEnqueue(), ofClaims(), ofLanes(), ofSettlements(), ofTransactions(), ofWorkers(), ofHousekeeping(), ofJudge())
}
