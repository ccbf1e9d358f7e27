# `make help` lists what there is; each target says what it does after its ##.
#
# Everything is installed into .venv/ from the locks in requirements/, whose hashes are checked.

.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

.PHONY: help
help: ## This list
	@awk -F ':.*## ' '/^[a-z.-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: .venv
.venv: $(BIN)/.installed ## An environment with both scripts, publisher and reconciler

.PHONY: run
run: .venv ## Publish a dozen posts to a sandbox, then serve it (ONCE=1: end when they are settled)
	@exec $(BIN)/publisher demo run $(if $(filter-out 0,$(ONCE)),--once)

.PHONY: doubt
doubt: .venv ## Lose an answer on purpose, then see how the post is found
	@exec $(BIN)/publisher demo doubt

.PHONY: test
test: $(BIN)/.installed-dev ## Every check, every test, then a rehearsal (ARGS="-k name" for some tests)
ifeq ($(ARGS),)
	@$(MAKE) --no-print-directory check
endif
	$(BIN)/pytest $(ARGS)
ifeq ($(ARGS),)
	@# 3: kept, but on a busy machine something was never met. `make crash` insists on that.
	$(BIN)/publisher rehearse --all --quick || test $$? -eq 3
endif

.PHONY: test-bluesky
test-bluesky: $(BIN)/.installed-dev ## The Bluesky adapter against the reference server (sets it up: Node, a C++ compiler)
	$(BIN)/pytest -m bluesky tests/bluesky $(ARGS)

.PHONY: test-mastodon
test-mastodon: $(BIN)/.installed-dev ## The Mastodon adapter against mastodon_mock (sets it up)
	$(BIN)/pytest -m mastodon tests/mastodon $(ARGS)

.PHONY: api-fuzz
api-fuzz: $(BIN)/.installed-dev ## Ask every operation of the API for each role whatever may be asked (EXAMPLES=200: an hour of it)
	PUBLISHER_TEST_FUZZ=$(or $(EXAMPLES),50) $(BIN)/pytest tests/api/test_fuzz.py $(ARGS)

.PHONY: crash
crash: $(BIN)/.installed-dev ## Crash it on purpose, then compare page and journal (CRASH_RUNS=2000: an hour of it)
ifeq ($(CRASH_RUNS),)
	$(BIN)/publisher rehearse --all --quick --prove $(ARGS)
else
	$(BIN)/publisher rehearse random --more $(CRASH_RUNS) --ledger tests/crash/ledger.jsonl $(ARGS)
endif

.PHONY: stateful
stateful: $(BIN)/.installed-dev ## Any sequence of steps over the real engine, page against journal (SEEDS=1..200: hours of it)
	$(BIN)/python -m tests.stateful --seeds $(or $(SEEDS),1..20) $(ARGS)

.PHONY: crash-restores
crash-restores: $(BIN)/.installed-dev ## Put backups back and run clones, then compare (RESTORES=70: more of it)
	$(BIN)/publisher rehearse restored --more $(or $(RESTORES),7) --ledger tests/crash/restores.jsonl $(ARGS)

.PHONY: mutants
mutants: $(BIN)/.installed-dev ## Take each guard away once and see that a test notices (MINUTES=30: as far as it gets)
	$(BIN)/python -m tests.mutation $(if $(MINUTES),--budget $(MINUTES)) $(ARGS)

.PHONY: mutmut
mutmut: $(BIN)/.installed-mutmut ## The same for the Python of engine and reconciler, in parts (MINUTES=30 ARGS=rules)
	$(BIN)/python -m tests.mutation.mutmut_parts $(if $(MINUTES),--budget $(MINUTES)) $(ARGS)

.PHONY: model
model: $(BIN)/.installed-dev ## Every state of the publish protocol, at larger bounds than every test run (docs/model.md)
	$(BIN)/python -m tests.model.explain $(ARGS)

.PHONY: model-spin
model-spin: $(BIN)/.installed-dev ## The protocol's second model, in Promela, at its larger sizes (needs spin and gcc)
	MODEL_SPIN=big $(BIN)/pytest tests/model/promela $(ARGS)

.PHONY: check
check: $(BIN)/.installed-dev ## Style, types and who imports whom; changes nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: format
format: $(BIN)/.installed-dev ## Put every file into the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: lock
lock: ## Resolve pyproject.toml into requirements/*.lock anew (needs uv); no host is written into them
	uv pip compile pyproject.toml --extra embedded --group build $(LOCK) -o requirements/run.lock
	uv pip compile pyproject.toml --extra embedded --group dev -c requirements/run.lock $(LOCK) \
	  -o requirements/dev.lock
	uv pip compile --group mutation -c requirements/dev.lock $(LOCK) -o requirements/mutation.lock
LOCK := --universal --python-version 3.11 --generate-hashes --upgrade --quiet \
  --no-emit-index-url --no-emit-find-links --no-annotate --no-header

.PHONY: bench
bench: $(BIN)/.installed bench/.venv/.installed ## Our engine beside other queues, one server, one run (20 minutes; bench/README.md)
	$(BIN)/python -m bench $(ARGS)

.PHONY: bench-quick
bench-quick: $(BIN)/.installed bench/.venv/.installed ## The same in one small round (2 minutes)
	$(BIN)/python -m bench --quick $(ARGS)

.PHONY: clean
clean: ## Remove what make, python and the checkers made; never .publisher/, which holds the journal
	rm -rf .venv build dist htmlcov .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache \
	  .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps say which locks the environment was made from. The package itself is installed
# editable, without its dependencies: those are the lock's.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
define install
@test -x $(BIN)/python || $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
  || { echo "Python 3.11 or newer is needed; name one: make PYTHON=/path/to/python3.11" >&2; exit 2; }
@test -x $(BIN)/python || { echo "Making .venv/ (once, about a minute)"; $(PYTHON) -m venv .venv; }
@$(INSTALL) --require-hashes -r $(1)
@$(INSTALL) --no-deps --no-build-isolation --editable .
@touch $@
endef

$(BIN)/.installed: requirements/run.lock pyproject.toml
	$(call install,requirements/run.lock)

$(BIN)/.installed-mutmut: requirements/mutation.lock $(BIN)/.installed-dev
	@$(INSTALL) --require-hashes -r requirements/mutation.lock
	@touch $@

# The other queues, and the Node that one of them needs, in an environment of their own.
bench/.venv/.installed: bench/requirements.lock bench/package.json bench/package-lock.json
	@test -x bench/.venv/bin/python || $(BIN)/python -m venv bench/.venv
	@bench/.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
	  -r bench/requirements.lock
	@PATH="$(CURDIR)/bench/.venv/bin:$$PATH" npm --prefix bench ci --silent
	@touch $@

$(BIN)/.installed-dev: requirements/dev.lock pyproject.toml tests/variants/pyproject.toml
	$(call install,requirements/dev.lock)
	@$(INSTALL) --no-deps --no-build-isolation --editable tests/variants
	@touch $(BIN)/.installed
