# `make help` lists what there is to do. Everything runs in .venv, made from requirements/.

VENV := .venv
BIN := $(VENV)/bin
# Processes of the tests, each with a Spark session of its own.
PROCESSES := 2
QUICK := not spark and not corpus and not cluster and not long and not slow
SLOW := slow or (corpus and spark)
SOURCES := $(shell find lib/corpusmill $(wildcard jobs conf) -type f -not -name '*.pyc')
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)

# Every command below, and what it starts, sees the environment's programs and the Java that was found.
export JAVA_HOME := $(CURDIR)/.java
export PATH := $(CURDIR)/$(BIN):$(PATH)
export NUMBA_CACHE_DIR ?= $(CURDIR)/.numba_cache

.DEFAULT_GOAL := help
.PHONY: help demo test check lint test-slow test-cluster bench bench-regimes dist format setup java clean

help:  ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.base java  ## Run the query-log job on the embedded sample and show what it found
	@$(BIN)/python scripts/demo.py

test: setup dist  ## Lint, types, import contracts and all tests but the slow ones
	@$(MAKE) --no-print-directory lint
	$(BIN)/python -m pytest -m "not ($(SLOW))" -n $(PROCESSES) --dist loadfile

check: $(VENV)/.dev lint  ## Format, lint, types, import contracts and the quick tests
	$(BIN)/python -m pytest -q -m "$(QUICK)" -n $(PROCESSES) --dist loadfile

lint: $(VENV)/.dev  ## Format, lint, types and import contracts
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports

test-slow: setup dist  ## All other tests: killed jobs, odd partitions, bad logs, real corpora
	$(BIN)/python -m pytest -m "$(SLOW)" -n $(PROCESSES) --dist loadfile

test-cluster: setup dist  ## The tests that start executor processes of their own
	$(BIN)/python -m pytest -m cluster

bench: setup $(VENV)/.bench  ## Side-by-side runs against peers
	@for file in $(filter-out %_regimes.py,$(wildcard benchmarks/[a-z]*.py)); do \
		echo "==> $$file"; $(BIN)/python -m benchmarks.$$(basename $$file .py) || exit 1; \
	done

bench-regimes: setup  ## Accuracy of coreference by regime: more than an hour
	$(BIN)/python -m benchmarks.coreference_regimes --results runs/coreference_regimes.jsonl

dist: dist/corpusmill-$(VERSION).zip dist/environment.tar.gz  ## What spark-submit needs on a cluster

format: $(VENV)/.dev  ## Format the code and mend what the linter can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

setup: $(VENV)/.dev java  ## The environment and Java, and nothing more

clean:  ## Remove what was built, keep .venv, .java and the runs
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .numba_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

# The environment. A changed list of versions installs again; everything else leaves it alone.

$(VENV)/.base: requirements/build.txt requirements/base.txt pyproject.toml
	@sh scripts/venv.sh $(VENV) requirements/build.txt requirements/base.txt
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: requirements/dev.txt | $(VENV)/.base
	@sh scripts/venv.sh $(VENV) requirements/dev.txt
	@touch $@

$(VENV)/.bench: requirements/bench.txt | $(VENV)/.dev
	@sh scripts/venv.sh $(VENV) requirements/bench.txt
	@touch $@

java: $(VENV)/.base
	@sh scripts/java.sh $(VENV)

# What spark-submit needs on a cluster.

dist/corpusmill-$(VERSION).zip: $(SOURCES) scripts/build_dist.py | $(VENV)/.base
	@$(BIN)/python scripts/build_dist.py

dist/environment.tar.gz: requirements/build.txt requirements/base.txt scripts/build_environment.sh | $(VENV)/.dev
	@sh scripts/build_environment.sh $(VENV)
