# `make demo` and `make test` do their own set-up on Debian or Ubuntu with Python 3.11+ and make.
.DEFAULT_GOAL := help
SHELL := /bin/sh
BIN := .venv/bin
T ?= tests
DEMO ?=
SECONDS ?= 60
JOBS ?= 2

.PHONY: help setup setup-dev demo test check fmt lint types contracts proof bench mutate fuzz docs migrate run clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## .venv with the aicr command
	@sh tools/setup.sh base

setup-dev: ## .venv with the test tools, and the system parts that the tests run against
	@sh tools/setup.sh dev

demo: setup ## sandbox, service, samples and the verdict table; DEMO=once ends after the table
	@$(BIN)/aicr evidence demo $(if $(filter once,$(DEMO)),--once)

test: setup-dev ## every test; T=tests/core narrows, JOBS=0 runs them in one process
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal $(T)

proof: setup-dev ## load, soak and crash proofs at full size
	@AICR_PROOF=full $(BIN)/python -m pytest -q -m proof tests
	@$(BIN)/aicr evidence bench --size full

check: setup-dev lint types contracts ## lint, types and import contracts

lint:
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types:
	@$(BIN)/mypy

contracts:
	@$(BIN)/lint-imports

fmt: ## format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: setup ## ratios in one run, as a table
	@$(BIN)/aicr evidence bench

mutate: setup-dev ## disable each rule in turn; a named test must fail
	@$(BIN)/python tools/mutate.py

fuzz: setup-dev ## hypothesis and atheris rounds; SECONDS=60 is the length of each target
	@$(BIN)/python tools/fuzz.py --seconds $(SECONDS)

docs: setup-dev ## write the generated pages anew
	@$(BIN)/python tools/generate_docs.py

run: setup ## the service with the settings of the environment
	@$(BIN)/aicr evidence serve

migrate: setup ## bring the database to this release's schema
	@$(BIN)/aicr evidence migrate

clean: ## remove what the targets made
	@rm -rf .venv var .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache tests/node/node_modules
