# Headwater's commands. Everything runs in .venv, which is made from the hash-pinned lock file.
# On a fresh machine only make and python3 (3.11 or later) are needed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

COMPILE := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 \
	--no-annotate --no-header --no-emit-index-url --quiet
# More than cores: half of what the tests do is to wait. Each takes some 4 GB at its end, most of it data in memory.
PROCESSES ?= 5
IN_PROCESSES := -p tests.support.distribution --numprocesses=$(PROCESSES) --no-loadscope-reorder

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: up test check bench screenshots openapi migration wheel lock help

up: $(STAMP) ## Run the whole stack in the foreground; Ctrl-C stops it, the data stays in .headwater
	@exec $(BIN)/python -m app.local

test: $(STAMP) ## Run all tests, on real servers, in PROCESSES (5); ARGS="-k name" chooses, in one
	@$(BIN)/python -m app.local.install_mysql
	@$(BIN)/python -m tests.console.install_chromium
	@$(BIN)/python -m tests.observability.install_promtool
	@# While pytest reads a source to show a failure, a traceback written by the collector would end the whole run: both
	@# parse, and Python 3.11.7 loses count. Without columns a traceback parses nothing.
	@# What pytest makes of the tests is kept: to do it again takes each process seconds.
	@PYTHONNODEBUGRANGES=1 PYTHONDONTWRITEBYTECODE= exec $(BIN)/python -m pytest $(or $(ARGS),$(IN_PROCESSES))

check: $(STAMP) ## Formatting, lint, types, those of the console too, and import direction, in under a minute
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.console.check_types

bench: $(STAMP) ## Measure creates, the API, filters of lists, event streams, questions, rotations and kept backups, each against its bare counterpart
	@$(BIN)/python -m benchmarks
	@$(BIN)/python -m benchmarks.pool
	@$(BIN)/python -m benchmarks.api
	@$(BIN)/python -m benchmarks.streams
	@$(BIN)/python -m benchmarks.questions
	@$(BIN)/python -m benchmarks.rotation
	@$(BIN)/python -m benchmarks.filters
	@$(BIN)/python -m benchmarks.backup_store

screenshots: $(STAMP) ## Write pictures of every page of the console to FOLDER (/tmp/headwater-screenshots)
	@HEADWATER_SCREENSHOTS=$(or $(FOLDER),/tmp/headwater-screenshots) $(BIN)/python -m pytest -m soak tests/console/test_screenshots.py

openapi: $(STAMP) ## Write the API's description to docs/openapi.json
	$(BIN)/python -m app.http.snapshot > docs/openapi.json

migration: $(STAMP) ## Write a migration for what changed in app/store/tables; ABOUT="colours of teams" describes it
	@PICCOLO_CONF=app.store.piccolo_conf $(BIN)/piccolo migrations new headwater --auto --desc='$(ABOUT)'

wheel: $(STAMP) ## Build the package into dist/; docs/operating.md says how to install it
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .

lock: $(STAMP) ## Resolve the newest allowed versions into requirements/
	$(COMPILE) --generate-hashes --upgrade --extra dev -o requirements/dev.lock
	$(COMPILE) --generate-hashes -c requirements/dev.lock --excludes requirements/not-in-containers.txt \
		-o requirements/runtime.lock
	$(COMPILE) -c requirements/dev.lock -o requirements/constraints.txt

help: ## Show this
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  The operator's command is $(BIN)/headwater. To put it on the path, with psql and pg_dump of the embedded PostgreSQL:"
	@echo '  eval "$$($(BIN)/headwater env)"'

# A half-made environment has no stamp, so the next make goes on where this one broke off.
$(STAMP): requirements/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Headwater needs Python 3.11 or later; PYTHON=... names one")'
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@echo "installing the locked packages into $(VENV)"
	@# The lock names everything, and resolving would not help: pip takes the hash of a package for none of its extras,
	@# so a newer release of one ended the installation.
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/dev.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
