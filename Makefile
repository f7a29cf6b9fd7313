# Each target is a command that you can also type. `make ci` is what CI runs.

.PHONY: ci test lint bench faults otelcol

ci: ## format, build, vet, lint and all tests of all modules
	.ci/run

test: ## all tests of all modules
	test/run.sh

lint: ## golangci-lint over all modules
	.ci/lint

bench: ## figures beside baselines and goals; ONLY=<regexp> picks groups of rows
	go -C test/bench test -count=1 -timeout 0 -run 'TestGoals/$(ONLY)' -goals

FOR ?= 10m
faults: ## random faults for as long as FOR says; SEED=<n> repeats a run's choice of them
	go -C test/faults test -count=1 -timeout 0 -v -run Soak -for $(FOR) -seed $(or $(SEED),0)

otelcol: ## the custom collector: bin/otelcol-comcount
	otelcol/build.sh
