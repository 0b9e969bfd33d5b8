# Two commands for a fresh machine with Python 3.11+, git and make: `make demo` and `make test`.
# Everything is installed into .venv; PYTHON chooses the interpreter that makes it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Made anew whenever one of these says something else.
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup node demo test lint types floors accuracy unit schema lock clean

help: ## Say what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

setup: $(STAMP) ## Make .venv and install everything, exactly as constraints.txt says

# torch is named together with everything that depends on it, so that one exact build serves all.
$(STAMP): pyproject.toml constraints.txt Makefile
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, found " + sys.version.split()[0] + "; name another one: make PYTHON=python3.12 ...")'
	"$(PYTHON)" -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group dev --editable '.[all]'
	@touch $(STAMP)

# GitHub's own parts, by which the tests execute and check action.yml. Where there is no npm, these
# tests are skipped and say so.
NODE_STAMP := tests/actions/node_modules/.installed

node: $(NODE_STAMP) ## Install what the tests of the Action need of npm, if there is npm

$(NODE_STAMP): tests/actions/package.json tests/actions/package-lock.json
	@if command -v npm > /dev/null; then \
	  npm ci --prefix tests/actions --ignore-scripts --no-audit --no-fund --loglevel=error && touch $@; \
	else \
	  echo 'no npm: the tests that execute action.yml will be skipped'; \
	fi

# IMAGE takes an image instead of building one.
demo: $(STAMP) ## Watch a small project being judged (DEMO='--keep DIR' keeps it; RUNNER=docker: in containers)
ifeq ($(filter-out local,$(RUNNER)),)
	$(BIN)/python -m ci_perf demo $(DEMO)
else
	image='$(IMAGE)'; [ -n "$$image" ] || image=$$($(BIN)/python -m ci_perf image build --engine '$(RUNNER)') || exit; \
	  $(BIN)/python -m ci_perf demo --runner '$(RUNNER)' --image "$$image" $(DEMO)
endif

test: lint types floors accuracy unit ## Lint, types, import floors, accuracy and all tests

lint: $(STAMP) ## ruff: every rule, and the format
	$(BIN)/python -m ruff check
	$(BIN)/python -m ruff format --check

types: $(STAMP) ## mypy, strict
	$(BIN)/python -m mypy

floors: $(STAMP) ## import-linter: you may only look down
	PYTHONPATH=. $(BIN)/lint-imports

accuracy: $(STAMP) ## False alarms and power of the judge, simulated: seconds
	$(BIN)/python -m benchmarks.verdicts

unit: $(STAMP) node ## pytest: unit, integration and end to end
	$(BIN)/python -m pytest -n 2 --dist loadgroup $(PYTEST)

schema: $(STAMP) ## Write docs/schema anew
	$(BIN)/python -m ci_perf schema --directory docs/schema

lock: $(STAMP) ## Write requirements/ anew: what is installed beside a token, and in the image
	$(BIN)/python -m uv pip compile pyproject.toml --group build --extra report \
	  --constraint constraints.txt --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command 'make lock' --quiet --output-file requirements/report.txt
	$(BIN)/python -m ci_perf image lock --requirements pyproject.toml --extra measure --group build \
	  --constraint constraints.txt --output requirements/container.txt
	$(BIN)/python -m ci_perf image lock --requirements docker/jupyter.in \
	  --constraint requirements/container.txt --output requirements/jupyter.txt

clean: ## Remove everything that make made
	rm -rf $(VENV) tests/actions/node_modules build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
