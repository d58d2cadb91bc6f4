# make demo and make test do all their own set-up on a fresh machine; make help lists the rest.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
LEROBOT := .venvs/lerobot
PROTOCOLS := .venvs/protocols
FORMATS := .venvs/formats
DOCS := .venvs/docs
CI_TOOLS := .venvs/ci
STAMP := .installed
# Which tests run, and of which simulators (empty: all that are not in .venv).
MARKED := not slow
SIMULATORS :=

.PHONY: help setup setup-lerobot setup-protocols setup-formats demo lint test test-core test-lerobot test-protocols test-formats test-simulators test-all fuzz chaos bench docs lint-ci build-eval-images clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(VENV)/$(STAMP) ## .venv with all that demo and tests need, the GL libraries, and Chromium for the tests of reports

$(VENV)/$(STAMP): pyproject.toml requirements/tested.txt scripts/gl_libraries.sh scripts/chromium.sh scripts/services.sh scripts/make_venv.sh
	scripts/gl_libraries.sh
	scripts/chromium.sh
	scripts/services.sh
	scripts/make_venv.sh $(VENV) "$$(scripts/find_python.sh $(PYTHON))" 'metaworld,pusht,gymnasium-robotics,onnx,dataset,remote,ray,analysis,hub,dev' requirements/tested.txt
	touch $@

setup-lerobot: $(LEROBOT)/$(STAMP) ## .venvs/lerobot: Python 3.12 with LeRobot and the simulators as it pins them

$(LEROBOT)/$(STAMP): pyproject.toml requirements/lerobot.txt scripts/gl_libraries.sh scripts/make_venv.sh
	scripts/gl_libraries.sh
	scripts/make_venv.sh $(LEROBOT) "$$(scripts/find_python.sh python3.12)" 'dev' requirements/lerobot.txt
	touch $@

setup-protocols: $(PROTOCOLS)/$(STAMP) ## .venvs/protocols: the real packages of openpi and vla-eval, which pin an older NumPy

$(PROTOCOLS)/$(STAMP): pyproject.toml requirements/protocols.txt scripts/make_venv.sh
	scripts/make_venv.sh $(PROTOCOLS) "$$(scripts/find_python.sh $(PYTHON))" 'remote,dev' requirements/protocols.txt
	touch $@

setup-formats: $(FORMATS)/$(STAMP) ## .venvs/formats: Every Eval Ever, Weights & Biases and Trackio, on Python 3.12

$(FORMATS)/$(STAMP): pyproject.toml requirements/formats.txt scripts/make_venv.sh
	scripts/make_venv.sh $(FORMATS) "$$(scripts/find_python.sh python3.12)" 'dev' requirements/formats.txt
	touch $@

demo: setup ## a learned policy beside the scripted expert on Meta-World: a table, a run directory, videos
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" scripts/demo.sh

lint: setup
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

test-core: setup
	$(VENV)/bin/python -m pytest -q --durations=25 -m "$(MARKED)"

test-lerobot: setup-lerobot
	HF_HUB_OFFLINE=1 $(LEROBOT)/bin/python -m pytest -q tests/benchmarks tests/datasets tests/policies tests/serving tests/suites tests/examples/test_act_from_experts.py -m "$(MARKED)"

test-simulators: setup ## each simulator's tests, in the environment that `robotrials bench install` makes for it
	scripts/test_simulators.sh $(VENV)/bin/python $(SIMULATORS) -- -m "$(MARKED)"

test-formats: setup-formats
	$(FORMATS)/bin/python -m pytest -q tests/results/export/test_every_eval_ever.py tests/run/test_tracking.py

test-protocols: setup-protocols
	$(PROTOCOLS)/bin/python -m pytest -q tests/policies/remote/test_openpi.py tests/policies/remote/test_vla_eval.py tests/serving/test_openpi_server.py

fuzz: setup ## a million inputs for every decoder, a hundred thousand for those with a socket or a file; 20 minutes
	ROBOTRIALS_FUZZ=1000000 $(VENV)/bin/python -m pytest -q --timeout=0 tests/wire/test_fuzz.py

chaos: setup ## kills, stops, hangs, a full disk, a cut network, in full; ROBOTRIALS_CHAOS_SEED=N repeats a run
	ROBOTRIALS_CHAOS=full $(VENV)/bin/python -m pytest -s -q tests/chaos

# Two at a time: the core's tests wait for processes half of their time. What fails does not keep the others from running.
test: lint ## everything CI runs: ruff, mypy, all tests but those marked slow
	@echo 'two parts at a time, each shown when it has ended: half an hour in all on two cores'
	$(MAKE) --no-print-directory --jobs=2 --keep-going --output-sync=line test-core test-lerobot test-simulators test-protocols test-formats

test-all: ## the slow ones, too
	$(MAKE) test MARKED="slow or not slow"

bench: setup ## the figures of docs/benchmarks.md
	$(VENV)/bin/python bench/engine.py
	$(VENV)/bin/python bench/rendering.py
	$(VENV)/bin/python bench/coordinator_load.py
	$(VENV)/bin/python bench/memory.py
	$(VENV)/bin/python bench/start_up.py
	$(VENV)/bin/python bench/serving.py
	$(VENV)/bin/python bench/report.py
	$(VENV)/bin/python bench/leaderboard.py
	$(VENV)/bin/python bench/remote.py
	$(VENV)/bin/python bench/schedule_simulation.py
	$(VENV)/bin/python bench/distributed.py --chunk=10
	$(VENV)/bin/python bench/tune.py
	$(VENV)/bin/python bench/dataset_analysis.py

$(DOCS)/$(STAMP): pyproject.toml requirements/docs.txt scripts/make_venv.sh
	scripts/make_venv.sh $(DOCS) "$$(scripts/find_python.sh $(PYTHON))" 'docs' requirements/docs.txt
	touch $@

docs: $(DOCS)/$(STAMP) ## the site, into site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/python -m mkdocs build --clean

$(CI_TOOLS)/$(STAMP): requirements/ci.txt
	$$(scripts/find_python.sh $(PYTHON)) -m venv $(CI_TOOLS)
	$(CI_TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/ci.txt
	touch $@

lint-ci: $(CI_TOOLS)/$(STAMP) ## workflows with actionlint and zizmor, Dockerfiles with hadolint, scripts with shellcheck
	PATH="$(CURDIR)/$(CI_TOOLS)/bin:$$PATH" scripts/lint_ci.sh

build-eval-images: ## images of benchmarks, each tried: docker/README.md
	scripts/build_eval_images.sh

clean: ## remove what make has made
	rm -rf $(VENV) .venvs outputs build dist site
