# Holdfast. `make` prints the targets.

SQLC := go tool -modfile=tools/sqlc.mod sqlc
LINT := go tool -modfile=tools/lint.mod golangci-lint
ACTIONLINT := go tool -modfile=tools/actionlint.mod actionlint

# The race detector needs a C compiler; without one the tests run without it. RACE= turns it off.
RACE ?= $(if $(shell command -v cc || command -v gcc || command -v clang),1)
# -count=1, because the result depends on a server of which go's test cache does not know. With the race detector, two slow
# cores take most of ten minutes.
GO_TEST := $(if $(RACE),CGO_ENABLED=1 go test -race,CGO_ENABLED=0 go test) -count=1 -timeout 20m

# PG=14 … PG=18 runs the tests on a private server of that version; T= selects tests by name;
# POOLER= is a PgBouncer to run the promises through.
PG ?=
T ?=
POOLER ?=

.PHONY: help demo bench bench-peers test embedding promises plans mutants soak check-run prove build image generate freeze verify docs lint fmt

help: ## print the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

demo: build ## watch durable work survive two crashes and a pause
	@bin/holdfast demo

bench: build ## run every scenario of the bench once, in small (bin/holdfast bench measures)
	@bin/holdfast bench --size small

test: ## run every test on a real Postgres (PG=14…18 picks its version, T= picks tests)
	@$(if $(PG),HOLDFAST_TEST_POSTGRES_VERSION=$(PG)) $(GO_TEST) $(if $(T),-run '$(T)') ./...

embedding: ## run the examples of docs/embedding.md: database/sql, sqlx, GORM, bun, ent
	@CGO_ENABLED=0 go test -C integration/embedding -count=1 ./...

promises: ## run the tests of the promises and of the worker (POOLER=pgbouncer runs them through it)
	@$(if $(PG),HOLDFAST_TEST_POSTGRES_VERSION=$(PG)) $(if $(POOLER),HOLDFAST_TEST_POOLER=$(POOLER)) $(GO_TEST) -run "$$(tools/promises)" ./integration

plans: ## check the plan of every hot statement, up to a million jobs
	@HOLDFAST_TEST_PLANS=full $(if $(PG),HOLDFAST_TEST_POSTGRES_VERSION=$(PG)) $(GO_TEST) -run '^TestPlans_' ./integration

mutants: ## plant known bugs one at a time: a test must catch each (ARGS='-short', '-only TEXT', '-table')
	@$(if $(PG),HOLDFAST_TEST_POSTGRES_VERSION=$(PG)) CGO_ENABLED=0 go run ./integration/mutants $(ARGS)

# Without the race detector, with which CI runs the tests among these.
prove: ## take every step of docs/proof.md, the long ones in short
	@CGO_ENABLED=0 go test -count=1 ./domain/model/... ./worker
	@CGO_ENABLED=0 go test -count=1 -timeout 20m -run "$$(tools/promises)|^Test(Histories|Pairs)_" ./integration
	@$(MAKE) --no-print-directory soak
	@$(MAKE) --no-print-directory mutants ARGS=-short

build: ## build bin/holdfast
	@CGO_ENABLED=0 go build -o bin/holdfast ./cmd/holdfast

# IMAGE= is its name.
IMAGE ?= holdfast

image: ## build a Docker image of the command alone (IMAGE=holdfast:1.0.0)
	@CGO_ENABLED=0 GOOS=linux go build -trimpath -ldflags '-s -w' -o bin/image/holdfast ./cmd/holdfast
	@docker build --quiet --file deploy/docker/Dockerfile --tag '$(IMAGE)' bin/image

generate: ## write gen/, db/bench, db/demo, the orders of docs/embedding.md and db/schema.sql anew after a change of SQL (needs a C compiler)
	@$(SQLC) generate
	@go test -count=1 -run '^TestSchema_FileIsCurrent$$' ./integration -update

freeze: ## keep the statements of the programs before the newest migration, from git (docs/schema-evolution.md)
	@go run ./integration/freeze

verify: ## fail when generated files or SQL rules have drifted (needs a C compiler)
	@tools/verify-queries
	@go test -count=1 -run '^TestSchema_FileIsCurrent$$' ./integration
	@go mod tidy -diff
	@go vet ./...

# SOAK=60m is how long to do harm, SEED=7 what chooses it, RATE= the jobs a second, DIR= where the history goes.
SOAK ?= 90s
SEED ?= 0
RATE ?= 350
DIR ?=

soak: ## keep every promise while everything fails, and judge it (SOAK=60m SEED=7 RATE=600 DIR=…)
	@CGO_ENABLED=0 go build -o bin/soak ./integration/soak
	@bin/soak run --length '$(SOAK)' --seed '$(SEED)' --rate '$(RATE)' $(if $(DIR),--dir '$(DIR)')

check-run: ## judge a soak again (DIR=…)
	@CGO_ENABLED=0 go build -o bin/soak ./integration/soak
	@bin/soak check $(if $(DIR),'$(DIR)')

# Tests by name: the same ones that hold the documents in the suite. What can be written anew is by generate and freeze, and
# the table of planted bugs by `go run ./integration/mutants -table`.
DOCS := ^Test(Docs|Runbook)_|^TestQueries_Readme|^TestMutants_Document|^TestDeploy_|^TestEvolution_(Statements|Migrations|Indexes|Newest)

docs: ## fail when a document says what is not so: run the commands and the SQL that it shows, look up the rest
	@$(GO_TEST) -run '$(DOCS)' ./cmd/... ./telemetry ./integration ./integration/mutants

lint: ## run the pinned golangci-lint and actionlint
	@$(LINT) run ./...
	@$(ACTIONLINT)

fmt: ## format the Go code
	@$(LINT) fmt ./...

# ARGS= are options of mutants, such as '-short', or of bench-peers, such as '--jobs 20000 --rounds 1'.
ARGS ?=

bench-peers: tools/peers/graphile/node_modules ## measure beside River, Graphile Worker and a bare loop (needs node; ARGS='--help')
	@CGO_ENABLED=0 go build -C tools/peers -o ../../bin/bench-peers .
	@bin/bench-peers $(ARGS)

tools/peers/graphile/node_modules: tools/peers/graphile/package-lock.json
	@npm ci --prefix $(@D) --no-audit --no-fund && touch $@
