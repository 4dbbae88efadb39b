# Everything a person needs to run; each target does its own set-up.
# The environment lies beside the sources, or in the user's cache where the sources are read-only.
ifndef VENV
VENV := $(shell if [ -w . ] || [ -d .venv ]; then echo .venv; else \
  echo "$${XDG_CACHE_HOME:-$$HOME/.cache}/gpucredits/venv-$$(pwd | cksum | cut -d ' ' -f 1)"; fi)
endif
PY := $(VENV)/bin/python
# Written by the bootstrap where Python starts only with LD_LIBRARY_PATH set.
-include $(VENV)/environment.mk
# One more than there are cores: a worker often waits for the disk.
WORKERS ?= $(shell expr $$(nproc) + 1)
BENCH ?=

.PHONY: help demo test check audit sbom faults bench compiled pure rows operations format lock clean
.DEFAULT_GOAL := help

help: ## say what can be run
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(VENV)/.ready: requirements.lock tools/bootstrap.py
	python3 tools/bootstrap.py $(VENV)

demo: $(VENV)/.ready ## see it work
	$(PY) -m gpucredits demo

test: $(VENV)/.ready ## run every test
	$(PY) -m pytest -n $(WORKERS) tests

check: $(VENV)/.ready ## format, lint, types, import contracts, tidy
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-cache
	$(PY) -m pytest -q --durations=0 tests/repo

audit: $(VENV)/.ready ## licences and known vulnerabilities of the packages, offline
	$(PY) tools/audit.py

sbom: $(VENV)/.ready ## a bill of materials, as CycloneDX (build/sbom.json)
	mkdir -p build
	$(PY) tools/sbom.py build/sbom.json

faults: $(VENV)/.ready ## kill, cut power, break disks, lose and race on purpose (ten minutes; FAULT_CYCLES=20 for more)
	$(PY) -m pytest -q --durations=0 -m faults tests/faults

compiled: $(VENV)/.ready ## compile the rules to C, beside their sources (a minute; a compiler)
	$(PY) tools/compile.py

pure: $(VENV)/.ready ## go back to plain Python
	$(PY) tools/compile.py --clean

bench: $(VENV)/.ready ## measure, as ratios in one run (a few minutes; BENCH="--growth" for more)
	$(PY) tools/compile.py --if-possible
	$(PY) bench/timeline.py
	$(PY) -m gpucredits bench heartbeats $(BENCH)
	$(PY) -m gpucredits bench heartbeats --gates
	$(PY) -m gpucredits bench admissions
	$(PY) -m gpucredits bench servers
	$(PY) -m gpucredits bench burst
	$(PY) -m gpucredits bench usage
	$(PY) bench/fairshare.py

rows: $(VENV)/.ready ## write what follows from the declared tables: rows.py, lists of columns in SQL
	$(PY) tools/make_rows.py

operations: $(VENV)/.ready ## write the client's calls and the docs' paths from the route table
	$(PY) tools/operations.py

format: $(VENV)/.ready ## rewrite the sources in the project's format
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

lock: ## pin the newest versions that pyproject.toml allows (needs uv)
	uv pip compile --universal --generate-hashes --no-emit-index-url --no-annotate --no-header \
	  --python-version 3.11 --upgrade pyproject.toml --extra server --extra redis --extra nats --extra kafka --group dev -o requirements.lock

clean: ## remove what the other targets made
	python3 tools/compile.py --clean
	rm -rf $(VENV) $(VENV).lock build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
