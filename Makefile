# Two commands for a fresh machine with Python 3.11+, git and make: `make demo` and `make test`. What
# `make test` leaves out, for time, `make test-all` runs too.
# Everything is installed into .venv; PYTHON chooses the interpreter that makes it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Both installations share one environment, which is made anew whenever these files change.
STAMP := $(VENV)/.installed
DEMO_STAMP := $(VENV)/.installed-for-the-demo
EMPTY := $(VENV)/.made
PIP = $(BIN)/python -m pip --disable-pip-version-check install --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help setup node demo example check test test-all rest lint types versions layers accuracy unit slow size schema site map lock wheels dist clean

help: ## Say what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

setup: $(STAMP) ## Make .venv and install everything, exactly as constraints.txt says

$(EMPTY): pyproject.toml constraints.txt Makefile
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, found " + sys.version.split()[0] + "; name another one: make PYTHON=python3.12 ...")'
	"$(PYTHON)" -m venv --clear $(VENV)
	$(PIP) --quiet 'pip>=25.1'
	@touch $@

# torch is named together with everything that depends on it, so that one exact build serves all.
$(STAMP): $(EMPTY)
	@echo 'Installing ci_perf, torch and the tools of development into $(VENV): 1 to 5 minutes, 2 GB'
	$(PIP) --quiet --group dev --editable '.[all]'
	@touch $@ $(DEMO_STAMP)

# An environment with the tools of development keeps them when it is made anew.
$(DEMO_STAMP): $(or $(wildcard $(STAMP)),$(EMPTY))
	@echo 'First: ci_perf and torch are installed into $(VENV), 1 to 3 minutes, 1 GB. Then: an example is judged, 3 minutes'
	$(PIP) --progress-bar on --editable '.[measure]'
	@touch $@

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
demo: $(DEMO_STAMP) ## Watch a small project being judged (DEMO='--keep DIR' keeps it; RUNNER=docker: in containers)
ifeq ($(filter-out local,$(RUNNER)),)
	$(BIN)/python -m ci_perf demo $(DEMO)
else
	image='$(IMAGE)'; [ -n "$$image" ] || { \
	    $(RUNNER) build --file docker/Dockerfile --tag ci-perf:demo --iidfile $(VENV)/image . \
	    && image=sha256:$$(sed 's/^sha256://' $(VENV)/image); \
	  } || exit; \
	  $(BIN)/python -m ci_perf demo --runner '$(RUNNER)' --container image="$$image" $(DEMO)
endif

# Its pictures have the font of the package fonts-noto-color-emoji of Debian.
example: $(STAMP) ## Write the reports of examples/repository anew: a minute
	$(BIN)/python -m examples.make_reports examples/repository/reports
	mv examples/repository/reports/red.png docs/page.png

# BASE is a branch, tag or commit. A regression in one suite (exit code 1) outweighs a missing answer.
BASE ?= main

check: $(STAMP) ## Measure ci_perf itself and judge it against baselines/, as its own pull requests are
	@status=0; for suite in self smoke; do \
	  $(BIN)/python -m ci_perf check --suite "$$suite" --against '$(BASE)' --output "run-$$suite.json" \
	    || { code=$$?; [ $$status -eq 1 ] || status=$$code; }; \
	done; exit $$status

test: lint types layers unit ## Lint, types, import layers, unit tests, and one story for each seam: minutes

test-all: test rest ## What make test runs, and everything else

rest: accuracy slow ## What make test leaves out

lint: $(STAMP) ## ruff: every rule, and the format
	$(BIN)/python -m ruff check
	$(BIN)/python -m ruff format --check

types: $(STAMP) ## mypy, strict
	$(BIN)/python -m mypy

# Newer Pythons than the one at hand: mypy knows their standard libraries, and pyodide is a CPython
# 3.14 that runs in Node, for which msgspec and hypothesis have wheels.
WASM := $(VENV)/wasm
WASM_STAMP := tests/wasm/node_modules/.installed
PURELIB = $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')

versions: $(STAMP) $(WASM_STAMP) ## Types by Python 3.12 to 3.14; tests of judge and report in CPython 3.14 (needs npm)
	for version in 3.12 3.13 3.14; do \
	  $(BIN)/python -m mypy --python-version "$$version" --enable-error-code deprecated || exit; \
	done
	node tests/wasm/run.mjs '$(CURDIR)' '$(CURDIR)/$(WASM)' "$(PURELIB)" tests/unit/judging tests/unit/report

$(WASM_STAMP): $(STAMP) tests/wasm/package.json tests/wasm/package-lock.json
	npm ci --prefix tests/wasm --ignore-scripts --no-audit --no-fund --loglevel=error
	$(PIP) --quiet --target $(WASM) --upgrade --no-deps --only-binary=:all: --implementation cp \
	  --python-version 3.14 --abi cp314 --platform pyemscripten_2026_0_wasm32 msgspec hypothesis
	@touch $@

layers: $(STAMP) ## import-linter: imports point to lower layers only
	PYTHONPATH=. $(BIN)/lint-imports

accuracy: $(STAMP) ## False alarms and power of the judge, simulated: a minute
	$(BIN)/python -m benchmarks.verdicts

RUN_TESTS = $(BIN)/python -m pytest -n 2 --dist loadgroup

unit: $(STAMP) node ## pytest: unit tests, and the stories
	$(RUN_TESTS) -m 'not slow and not gpu and not fleet' $(PYTEST)

# So that at the end no process is left alone with a test of minutes.
LONGEST_FIRST := tests/e2e tests/features tests/gpu tests/integration tests/unit

slow: $(STAMP) node ## pytest: real processes, containers, the Action, a fleet, the demo
	$(RUN_TESTS) -m 'slow and not gpu and not fleet' $(LONGEST_FIRST) $(PYTEST)

size: $(STAMP) ## Count code lines by folder; fails above the budget
	@$(BIN)/python -m benchmarks.size

schema: $(STAMP) ## Write docs/schema anew
	$(BIN)/python -m ci_perf schema --directory docs/schema

site: $(STAMP) ## Build the site of the documents into build/site, strictly
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

map: ## List every module with the first line of its docstring
	@grep -rm1 '^"""' --include='*.py' ci_perf | sort

COMPILE := $(BIN)/python -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock'
# Here no code of a package runs, and none in a build: what has no wheel is refused.
IN_AN_IMAGE := --only-binary :all: --overrides docker/no-torch.txt

lock: $(STAMP) ## Write requirements/ anew: what is installed beside a token, and in the image
	$(COMPILE) pyproject.toml --group build --extra report \
	  --constraint constraints.txt --output-file requirements/report.txt
	$(COMPILE) pyproject.toml --extra measure --extra models --group build $(IN_AN_IMAGE) \
	  --constraint constraints.txt --output-file requirements/container.txt
	$(COMPILE) docker/jupyter.in $(IN_AN_IMAGE) \
	  --constraint requirements/container.txt --output-file requirements/jupyter.txt

# What ci_perf and its tests of GPUs need beside torch; numpy and transformers alone are larger than
# all of it, and only some workloads of the suite import them.
PYTHON_VERSION ?= 3.11
PLATFORM ?= manylinux_2_28_x86_64
WHEELS := build/wheels
WHEELS_MIB := 60
CARRIED := click jinja2 msgspec rich nvidia-ml-py pytest pytest-rerunfailures pytest-timeout pytest-xdist hypothesis

wheels: $(EMPTY) ## Collect in build/wheels what a machine with torch lacks (PYTHON_VERSION, PLATFORM)
	rm -rf $(WHEELS)
	$(PIP) --quiet --target $(WHEELS) --only-binary=:all: --implementation cp \
	  --python-version '$(PYTHON_VERSION)' --platform '$(PLATFORM)' \
	  --platform manylinux_2_17_$(subst manylinux_2_28_,,$(PLATFORM)) \
	  --platform manylinux2014_$(subst manylinux_2_28_,,$(PLATFORM)) \
	  $(CARRIED)
	@size=$$(du -sm $(WHEELS) | cut -f1); \
	  if [ "$$size" -ge $(WHEELS_MIB) ]; then \
	    echo "$(WHEELS): expected less than $(WHEELS_MIB) MiB, found $$size MiB; see the largest: du -sm $(WHEELS)/*" >&2; exit 1; \
	  fi; \
	  echo "$(WHEELS): $$size MiB for Python $(PYTHON_VERSION) on $(PLATFORM)"

# The wheel has to start by itself: in a new environment, far from this checkout.
RELEASE := build/release

dist: $(EMPTY) ## Build sdist and wheel into dist/, check both, and start the wheel in a new environment
	rm -rf dist $(RELEASE)
	$(PIP) --quiet --group release
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	"$(PYTHON)" -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt dist/*.whl
	cd $(RELEASE) && bin/ci-perf --version && bin/ci-perf list --suite builtin:smoke

clean: ## Remove everything that make made
	rm -rf $(VENV) tests/actions/node_modules tests/wasm/node_modules build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
