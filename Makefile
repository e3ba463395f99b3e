# Gyrostat. `make demo` and `make test` need python3, python3-venv and nothing else; both make the venv first.
PYTHON ?= python3
VENV ?= .venv
PIP_ARGS ?=
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# One thread a process: two that spin for one core each are slower than one (measured 10 to 100 times).
export OMP_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1
export PYTHONDONTWRITEBYTECODE ?= 1
JOBS ?= 2
PEER_VENV ?= .venv-peers
TRL_VENV ?= .venv-trl
SIDE_BY_SIDE ?=
# A file's tests stay together, for what they share; in their own order, for the longest file is among the first.
PYTEST = $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder
HF := tests/gyrostat/integrations/hf
TRL_TESTS = $(HF)/test_mended.py $(HF)/test_tutorial.py $(HF)

.PHONY: help venv demo test test-full test-trl bytecode check bench bench-detection recipe faults scenarios chaos boards stack stack-test clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 12

venv: $(STAMP)  ## the virtual environment, with everything installed in it

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
	  echo "python3 cannot make a venv; on Debian: apt-get install python3-venv"; rm -rf $(VENV); exit 2; }
	@echo "installing into $(VENV): torch is 190 MB, this takes a few minutes the first time"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -c constraints.txt setuptools wheel
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -c constraints.txt \
	  --no-build-isolation -e '.[agent,gpu,reference,dev]'
	@touch $@

demo: venv  ## train, break, mend and report: a poisoned item twice, and a learning rate too high
	$(BIN)/gyrostat demo --scenario nan_data
	$(BIN)/gyrostat demo --scenario nan_applied
	$(BIN)/gyrostat demo --scenario divergence

test: venv bytecode  ## the tests, JOBS (2) at once
	$(PYTEST)

test-full: venv bytecode  ## the long campaigns too
	$(PYTEST) -m "full or not full"

test-trl: venv $(TRL_VENV)/.installed  ## real TRL runs, watched and mended, in a venv of their own of 1.5 GB; CI does not run it
	GYROSTAT_TRL_PYTHON=$(CURDIR)/$(TRL_VENV)/bin/python $(PYTEST) -m trl $(TRL_TESTS)

$(TRL_VENV)/.installed: pyproject.toml constraints.txt
	@test -x $(TRL_VENV)/bin/python || $(PYTHON) -m venv $(TRL_VENV)
	$(TRL_VENV)/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -c constraints.txt \
	  torch trl transformers datasets accelerate
	@touch $@

bytecode: venv  # hundreds of processes are started by the tests: each would compile the packages anew, for 0.3 s
	@$(BIN)/python -m compileall -q trainer rules agent exporters

check: venv  ## format, lint, types, layers, rule packs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/gyrostat rules check
	$(BIN)/gyrostat rules test tests/gyrostat_rules/packs/*.yaml

bench: venv  ## speed, as ratios against named peers in one run
	@for b in emit sync_count lost_records blocked_emit nan_to_directive event_files; do \
	  echo "== $$b"; $(BIN)/python benchmarks/$$b.py --quick || exit 1; done
	@echo "== sdk_share"; $(BIN)/python benchmarks/sdk_share.py
	@echo "== engine_feed"; $(BIN)/python benchmarks/engine_feed.py --steps 500
	@echo "== checkpoint_block"; $(BIN)/python benchmarks/checkpoint_block.py
	@echo "== checkpoint_verify"; $(BIN)/python benchmarks/checkpoint_verify.py 64

bench-detection: $(PEER_VENV)/.installed  ## beside other tools on one corpus; SIDE_BY_SIDE="--split judge --runs 400"
	$(PEER_VENV)/bin/python benchmarks/detection/sidebyside.py --json benchmarks/results/detection.json $(SIDE_BY_SIDE)

$(PEER_VENV)/.installed: benchmarks/detection/peers.txt benchmarks/detection/peer_venv.py $(STAMP)
	$(BIN)/python benchmarks/detection/peer_venv.py $(PEER_VENV)
	@touch $@

recipe: venv  ## the reference trainer's recipe and its gate: 10 seeds and 10 twins, about 10 CPU minutes
	$(BIN)/python benchmarks/recipe.py

faults: venv  ## the reference trainer's faults, 10 seeds each: do they appear as they should
	$(BIN)/python benchmarks/fault_gate.py

scenarios: venv  ## 20 seeds of every scenario, mended with nobody's help: hours; goes on where it was
	$(BIN)/python benchmarks/scenarios.py --json benchmarks/results/scenarios.json

stack: venv  ## Prometheus, Alertmanager and an agent with a run that breaks, all real, on loopback, until Ctrl-C
	$(BIN)/python dashboards/stack/stack.py

stack-test: venv  ## shows the way from a NaN to the one on call, and back: a minute or two
	$(BIN)/python dashboards/stack/stack.py --test

boards: venv  ## the Grafana boards, made anew
	$(BIN)/python -B dashboards/grafana/generate.py

chaos: venv  ## faults, kills, full disks and clock jumps drawn at random into real runs: hours; goes on where it was
	$(BIN)/python benchmarks/chaos_runs.py --json benchmarks/results/chaos.json

clean:  ## the venv and what was built
	rm -rf $(VENV) $(PEER_VENV) $(TRL_VENV) build dist runs .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find trainer rules agent exporters -name __pycache__ -prune -exec rm -rf {} +
