# `make demo` and `make test` set up and run; `make setup` makes .venv alone. One thread a process: see docs/science.md.
SHELL := bash
PYTHON ?= python3
export OMP_NUM_THREADS ?= 1
export HF_HUB_OFFLINE ?= 1
# Hundreds of test processes import torch: compiled once, not each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test coverage slow check format setup mutants bench clean

demo: .venv/ready        ## set up, then run the first recipe
	.venv/bin/killick run arithmetic

test: .venv/ready        ## set up, then the suite
	.venv/bin/pytest -n 2

coverage: .venv/ready    ## the suite again, line by line: twice as slow
	.venv/bin/pytest -n 2 --cov --cov-report=term --cov-fail-under=90

slow: .venv/ready        ## the studies that take minutes
	.venv/bin/pytest -m slow

check: .venv/ready       ## format, lint, types, layers
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports

format: .venv/ready      ## rewrite to the house's format
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

mutants: .venv/ready     ## plant faults in the formulas and count those that the tests catch
	.venv/bin/python tests/mutations.py

bench: .venv/ready       ## race the PPO loop against a plain one
	.venv/bin/python benchmarks/race.py

setup: .venv/ready       ## make .venv with everything that development needs

.venv/ready: pyproject.toml constraints.txt
	@PYTHON=$(PYTHON) bash .ci/setup
	@touch $@

clean:                   ## remove .venv and caches
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis
