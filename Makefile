# Every target works in a fresh clone: the first one to run sets up .venv, later ones find it ready.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict # fails for a page that the nav lacks, and for a dead link

.DEFAULT_GOAL := help
.PHONY: help setup run test test-changed check check-types check-others bench soak docs format lock clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

$(READY): requirements/all.lock requirements/java.lock scripts/bootstrap.py
	@$(PYTHON) scripts/bootstrap.py
	@touch $@

setup: $(READY) ## only set up: virtual environment, locked dependencies, Java if there is none

run: $(READY) ## show what Situ does, on the example project
	@scripts/show.sh

test: $(READY) ## all tests but the long ones
	@$(BIN)/python scripts/compile_tests.py
	@$(BIN)/pytest -n 3 --tb short --dist loadscope --no-loadscope-reorder --junitxml .pytest_cache/tests.xml

test-changed: $(READY) ## the tests that a change since main can reach
	@$(BIN)/python scripts/changed_tests.py

check: $(READY) ## formatting, lint, types, import rules, documentation
	@$(MAKE) --no-print-directory --jobs 2 check-types check-others

check-types: $(READY) # three quarters of the time of all checks
	@$(BIN)/mypy

check-others: $(READY)
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/lint-imports --no-cache --no-logo
	@$(BIN)/python scripts/generate_docs.py --check
	@$(MKDOCS) --quiet

bench: $(READY) ## benchmarks; results go to the documentation
	@$(BIN)/python -m benchmarks

soak: $(READY) ## the long tests: hours of generated and hostile input
	@HYPOTHESIS_PROFILE=soak $(BIN)/pytest -m soak

docs: $(READY) ## the documentation, into site/
	@$(BIN)/python scripts/generate_docs.py
	@$(MKDOCS)
	@echo "documentation: site/index.html"

format: $(READY) ## format the code and fix what can be fixed safely
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lock: $(READY) ## resolve the dependencies of pyproject.toml again
	@$(BIN)/python scripts/lock.py

clean: ## remove everything that can be made again
	rm -rf .venv .bootstrap.lock .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache site dist
