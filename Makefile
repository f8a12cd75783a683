# One command does everything: `make demo` and `make test` install first what they need.
# A fresh machine needs `make` and Python 3.11 or later.

SHELL := /bin/bash
BIN := .venv/bin
RUNS := .venv/runs
TESTS_TOO := .venv/installed
WORKERS ?= 2
.DEFAULT_GOAL := help
.PHONY: help install demo test test-lowest test-newest mutants slow check format bench docs clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(TESTS_TOO)  ## create .venv with program, demo and tests (nothing happens when it is up to date)

$(RUNS): pyproject.toml constraints.txt
	@set -e; \
	if [ ! -x $(BIN)/python ] || ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	  for candidate in $(PYTHON) python3 python3.13 python3.12 python3.11; do \
	    if "$$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	      chosen="$$candidate"; break; \
	    fi; \
	  done; \
	  if [ -z "$${chosen:-}" ]; then \
	    echo "make install: expected Python 3.11 or later with its venv module, found none;" \
	         "install one, or name it: make install PYTHON=/path/to/python3" >&2; exit 1; \
	  fi; \
	  echo "creating .venv with $$("$$chosen" --version)"; \
	  "$$chosen" -m venv --clear .venv; \
	fi
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
# What is editable gets no byte code from pip, and where Python may write none, every start would compile 130 modules.
	@$(BIN)/python -m compileall -q hermite derivations odesim figures
	@touch $@

$(TESTS_TOO): $(RUNS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(RUNS)  ## integrate the liao system, and compare the two back ends on a small case
	$(BIN)/python -m odesim.demo

test: install  ## the fast CPU tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

# Environments of their own, made anew; PYTHON names the interpreter, TESTS some of the tests (all).
VERSIONS := .versions
define other_versions
	"$(or $(PYTHON),python3)" -m venv --clear $(VERSIONS)/$(1)
	$(VERSIONS)/$(1)/bin/python -m pip install --quiet --disable-pip-version-check $(2) -e '.[dev]'
	$(VERSIONS)/$(1)/bin/python -m pytest -n $(WORKERS) --dist loadfile $(TESTS)
endef

test-lowest: install  ## the tests with the lowest version of every dependency that is allowed
	@mkdir -p $(VERSIONS)
	$(BIN)/python -m tests.versions > $(VERSIONS)/lowest.txt
	$(call other_versions,lowest,-c $(VERSIONS)/lowest.txt)

test-newest:  ## the tests with the newest version of every dependency
	$(call other_versions,newest,--upgrade)

mutants: install  ## mutations of the program that a few tests each must notice
	$(BIN)/python -m tests.mutations --workers $(WORKERS)

slow: install  ## the tests that take long
	$(BIN)/python -m pytest -m "slow and not gpu" -n $(WORKERS) --dist loadfile

check: install  ## format, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

format: install  ## put the source into the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: install  ## speed and memory against public peers (adds the peers itself)
	$(BIN)/python -m benchmarks

docs: install  ## the site, in docs/_build (adds what builds it), warnings are errors; QUICK=1 runs no tutorial and no SGD
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	ODESIM_DOCS_QUICK=$(QUICK) $(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	$(BIN)/python docs/_ext/check.py docs/_build/html

clean:  ## remove the environment and every cache, keep the runs
	rm -rf .venv $(VERSIONS) build dist docs/_build *.egg-info .pytest_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
