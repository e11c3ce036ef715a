# Tiled Matmul. `make` says what there is to do; every target sets up what it needs, once.

SHELL := bash
# Where nothing compiled may be written, every process compiles torch and its like anew.
export PYTHONDONTWRITEBYTECODE :=
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:

PYTHON ?= python3
CORES := $(shell nproc 2>/dev/null || echo 2)
# How many processes run tests beside each other: one more than there are cores, at most eight, as
# many tests wait for a process or the clock.
JOBS ?= $(shell echo $$(($(CORES) < 8 ? $(CORES) + 1 : 8)))
# How many processes share the GPU in test-gpu: each takes a core and about 1 GB of its memory.
GPU_JOBS ?= $(shell echo $$(($(CORES) < 12 ? $(CORES) : 12)))
CHAPTER_JOBS ?= $(shell echo $$((($(GPU_JOBS) + 1) / 2)))
PORT ?= 8000
SEEDS ?= 3
ARTIFACTS ?= _artifacts
# OFFLINE=1: a GPU machine with no network, which has torch, triton, numba, numba-cuda, matplotlib
# and pytest of its own. The rest it takes from wheelhouse/, which `make wheelhouse` fills elsewhere.
OFFLINE ?=

CHAPTERS = $(sort $(wildcard chapters/*.ipynb))
APPENDICES = $(sort $(wildcard chapters/a[0-9]_*.ipynb))
# Those that take the longest without a GPU begin first, so that no process waits at the end.
FIRST = $(wildcard $(addprefix chapters/,03_* 12_* 08_* 07_* 10_* 02_*))
EXERCISES = $(sort $(wildcard exercises/*.ipynb))
SOLUTIONS = $(sort $(wildcard exercises/solutions/*.ipynb))
# Solutions are graded by tests; of their notebooks, one runs of each kind of exercise.
SOME = $(wildcard $(addprefix exercises/solutions/,03_* 04_* 11_*))
# A learner's copy has no tests: there the chapters run, and the starters are graded.
TESTS = $(wildcard tests/conftest.py)
GPU_TESTS = $(shell grep -rl --include='test_*.py' 'mark\.gpu' tests)
WHEELS = $(wildcard wheelhouse/*.whl)
NEW_ENOUGH = $(shell $(PYTHON) -c 'import sys; print(sys.version_info >= (3, 11))' 2>/dev/null; true)
VERSION = $(shell command -v $(PYTHON) >/dev/null && $(PYTHON) --version 2>&1 || echo not there)

ifdef OFFLINE
RUN := $(PYTHON)
READY := .site/.installed
export PYTHONPATH := $(CURDIR)/.site:$(CURDIR)/src
export JUPYTER_PATH := $(CURDIR)/.site/share/jupyter
export IPYTHONDIR := $(CURDIR)/.site/share/ipython
else
RUN := .venv/bin/python
READY := .venv/.installed
endif

PYTEST = $(RUN) -m pytest
NBVAL = $(PYTEST) -c tests/notebooks/nbval.ini --rootdir=.
ON_GPU = TILED_MATMUL_BACKEND=gpu
# What is compiled is kept for the next run, and where times are not looked at, timing is short.
SIMULATED = TILED_MATMUL_BACKEND=simulator TILED_MATMUL_COMPILED=$(CURDIR)/.pytest_cache/d/compiled
QUICK = TILED_MATMUL_BUDGET_S=0.1
NOT_RUN = _build/not_run.txt
# A worker that runs out of tests takes some of another's; a notebook is one kernel, for one worker.
TEST_JOBS = -n $(JOBS) --dist worksteal
NOTEBOOK_JOBS = -n $(JOBS) --dist loadfile

.PHONY: help book pdf test test-long test-answers test-browser test-cluster lab serve grade doctor bench \
	measure test-gpu test-gpus notebooks-gpu gpu-refresh size wheelhouse test-copy test-colab \
	test-newest newest-lock languages languages-gpu clean online chapters-exist gpu-tests-exist

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' Makefile
	@echo "The first call sets up .venv: some minutes, 3 to 6 GB. PYTHON=python3.12 chooses the Python."

## For everybody

book: online $(READY) ## check the notebooks, build the book from their stored outputs
	$(RUN) -m tiled_matmul notebooks check
	$(RUN) -m tiled_matmul notebooks check --pages
	@# All pages, always: a page that is not built again does not repeat its warning.
	rm -rf _build/html
	.venv/bin/jupyter-book build --all -W -n --keep-going .
	@echo "The book: file://$(CURDIR)/_build/html/index.html"

# Needs the system's Chromium, as test-browser does.
pdf: book .venv/.browser ## the whole book as one PDF, _build/tiled-matmul.pdf
	$(RUN) tools/print_book.py

test: online $(READY) chapters-exist ## the tests that need no GPU, and the chapters
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	@mkdir -p _build; rm -f $(NOT_RUN)
	$(if $(TESTS),$(SIMULATED) TILED_MATMUL_LONG=0 TILED_MATMUL_NOT_RUN=$(NOT_RUN) \
		$(PYTEST) $(TEST_JOBS) tests, \
		$(SIMULATED) $(RUN) -m tiled_matmul exercises check all)
	$(SIMULATED) $(QUICK) $(NBVAL) $(NOTEBOOK_JOBS) --nbval-lax \
		$(FIRST) $(filter-out $(FIRST) $(APPENDICES),$(CHAPTERS)) $(SOME)
	@# The last lines; `notebooks check` lets no cell of a notebook be skipped.
	@$(if $(TESTS),cat $(NOT_RUN),:)
	@echo "Nor did $(words $(APPENDICES)) appendices and $(words $(filter-out $(SOME),$(SOLUTIONS))) notebooks of solutions run: make test-long."

test-long: online $(READY) ## what make test leaves out, as it takes minutes: tests, notebooks
	$(if $(TESTS),$(SIMULATED) $(PYTEST) $(TEST_JOBS) -m long tests)
	$(SIMULATED) $(QUICK) $(NBVAL) $(NOTEBOOK_JOBS) --nbval-lax $(APPENDICES) \
		$(filter-out $(SOME),$(SOLUTIONS))

test-answers: online $(READY) ## every answer kept as data, SEEDS=3 times each, and every mistake
	TILED_MATMUL_SEEDS=$(SEEDS) $(SIMULATED) $(PYTEST) $(TEST_JOBS) \
		$(addprefix tests/grader/test_grader_,answers.py mistakes.py limits.py)

# Needs the system's Chromium: apt-get install chromium.
test-browser: book .venv/.browser ## every page of the built book in Chromium, light, dark, wide, narrow
	TILED_MATMUL_BROWSER=required $(PYTEST) -n $(CORES) --dist worksteal tests/browser

test-cluster: online .venv/.cluster ## a class graded on Dask clusters, whose parts are killed
	$(SIMULATED) $(PYTEST) $(TEST_JOBS) -m cluster tests/grader/test_grader_cluster.py

# It serves the whole course, as chapters link to exercises and to the glossary, and opens chapters/.
# What JupyterLab does not trust it shows without pictures. LAB_OPTIONS= adds options of its own.
lab: online $(READY) ## JupyterLab on chapters and exercises, and on what they link to
	@$(RUN) -m nbformat.sign $(CHAPTERS) $(SOLUTIONS) $(EXERCISES) >/dev/null
	JUPYTER_CONFIG_PATH=$(CURDIR)/tools/lab $(RUN) -m jupyterlab \
		$(if $(filter 0,$(shell id -u)),--allow-root) --ServerApp.root_dir="$(CURDIR)" \
		--LabApp.default_url=/lab/tree/chapters $(LAB_OPTIONS)

serve: book ## the built book on localhost, PORT=8000
	@echo "The book: http://localhost:$(PORT)/  (Ctrl-C ends)"
	@$(RUN) -m http.server $(PORT) --bind 127.0.0.1 --directory _build/html

grade: $(READY) ## grade the exercise notebooks, a line for each exercise
	$(RUN) -m tiled_matmul grade $(EXERCISES)

doctor: $(READY) ## what machine this is, and what it lacks
	$(RUN) -m tiled_matmul doctor

bench: $(READY) ## time the ladder here, and merge the records into RESULTS= if that is given
	$(RUN) -m tiled_matmul bench $(if $(RESULTS),--json "$(RESULTS)")

measure: $(READY) ## measure SUITES= (all that this machine can), into results/; again goes on
	$(RUN) -m tiled_matmul measure $(or $(SUITES),--all) --resume $(MEASURE_OPTIONS)

## On a GPU machine; OFFLINE=1 where it has no network

test-gpu: $(READY) chapters-exist gpu-tests-exist ## GPU tests, and all chapters by strict nbval
	$(ON_GPU) $(PYTEST) -m "gpu and not alone" -n $(GPU_JOBS) --dist worksteal $(GPU_TESTS)
	$(ON_GPU) $(NBVAL) --nbval -n $(CHAPTER_JOBS) --dist loadfile $(CHAPTERS)
	@# What is timed, or fills the GPU, has it to itself.
	$(ON_GPU) $(PYTEST) -m "gpu and alone" -n 0 $(GPU_TESTS)

test-gpus: $(READY) gpu-tests-exist ## where there are two GPUs or more, the tests that need them
	$(ON_GPU) $(PYTEST) -m "gpus and not alone" -n $(GPU_JOBS) --dist worksteal $(GPU_TESTS)
	$(ON_GPU) $(PYTEST) -m "gpus and alone" -n 0 $(GPU_TESTS)

notebooks-gpu: $(READY) chapters-exist ## run all chapters here, store outputs and stamps
	$(ON_GPU) $(RUN) -m tiled_matmul notebooks run --all

gpu-refresh: $(READY) ## all that a GPU machine is asked for; pack it into ARTIFACTS=
	@mkdir -p "$(ARTIFACTS)/logs"; rm -f "$(ARTIFACTS)"/logs/*.log; \
	set -o pipefail; status=0; \
	for step in doctor measure notebooks-gpu test-gpu; do \
		$(ON_GPU) $(MAKE) --no-print-directory $$step 2>&1 \
			| tee "$(ARTIFACTS)/logs/$$step.log" || { status=1; break; }; \
	done; \
	tar -czf "$(ARTIFACTS)/gpu-refresh.tar.gz" chapters results -C "$(ARTIFACTS)" logs; \
	echo "packed: $(ARTIFACTS)/gpu-refresh.tar.gz"; \
	if [ $$status != 0 ]; then echo "make $$step failed" >&2; fi; exit $$status

## For maintainers

wheelhouse: online $(READY) ## wheelhouse/: what a GPU machine with no network needs
	$(RUN) tools/wheelhouse.py fetch wheelhouse

test-copy: online $(READY) ## `make test` and `make book` in a learner's copy
	copy=$$(mktemp -d)/copy && $(RUN) -m tiled_matmul exercises release $$copy && \
		ln -s "$(CURDIR)/.venv" $$copy/.venv && PYTHONPATH=$$copy/src \
		$(MAKE) --no-print-directory -C $$copy -o .venv/.installed test book && rm -rf $$copy

test-colab: online .venv-colab/.installed chapters-exist ## the CPU tests with Colab's versions
	$(call test-with,.venv-colab)

test-newest: online .venv-newest/.installed chapters-exist ## the CPU tests with the newest versions
	$(call test-with,.venv-newest)

newest-lock: online ## resolve the newest versions anew, into requirements-newest.lock
	$(PYTHON) tools/newest.py requirements-newest.lock

# $(1) the folder of an environment.
define test-with
	$(SIMULATED) $(1)/bin/python -m pytest $(TEST_JOBS) tests
	$(SIMULATED) $(QUICK) $(1)/bin/python -m pytest -c tests/notebooks/nbval.ini --rootdir=. \
		$(NOTEBOOK_JOBS) --nbval-lax $(CHAPTERS) $(SOLUTIONS)
endef

languages-gpu: $(READY) ## time the rungs in other languages on a Hopper GPU
	$(RUN) -m tiled_matmul measure abroad

languages: online $(READY) ## compile the rungs in other languages; LANGUAGES="--check warp"
	$(RUN) -m tiled_matmul languages $(LANGUAGES)

size: ## lines by room, and the change since SINCE= (HEAD)
	@$(PYTHON) tools/size.py $(or $(SINCE),HEAD)

clean: ## remove what was built; .venv and wheelhouse stay
	rm -rf _build _artifacts .site .pytest_cache .ruff_cache .hypothesis
	find src tests tools chapters exercises \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune \
		-exec rm -rf {} +

online:
	$(if $(OFFLINE),$(error OFFLINE=1 is for doctor, bench, measure, test-gpu, test-gpus, notebooks-gpu, \
		gpu-refresh))

chapters-exist:
	$(if $(CHAPTERS),,$(error chapters/ holds no notebook))

gpu-tests-exist:
	$(if $(GPU_TESTS),,$(error no file in tests/ has a test marked gpu))

## Set-up. A stamp that is newer than the lock means: nothing to do.

# What is imported is compiled then: compiling all that is installed took half a minute.
INSTALL = pip install -q --no-compile --disable-pip-version-check
# $(1) the folder, $(2) the lock, $(3) -r if the lock's numba-cuda does not bring CUDA's compiler, as
# Colab has that itself. torch comes first and by itself: a bare `torch` among others can
# pull in gigabytes. The resolver stays on, so pins that contradict each other stop here.
define set-up
	$(if $(filter True,$(NEW_ENOUGH)),,$(error the course needs Python 3.11 or newer, and \
		$(PYTHON) is $(VERSION): name another, as in: make PYTHON=python3.12 $(MAKECMDGOALS)))
	@$(1)/bin/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(1)
	@echo "Setting up $(1) with $$($(1)/bin/python --version), once (1 of 3: torch)"
	@$(1)/bin/python -m $(INSTALL) "$$(grep '^torch==' $(2))"
	@echo "Setting up $(1) (2 of 3: the packages of $(2))"
	@cuda=$$($(1)/bin/python -W ignore -c \
		'import torch; print("" if torch.version.cuda else "$(or $(3),-c) requirements-cuda.lock")') && \
	$(1)/bin/python -m $(INSTALL) -r $(2) $$cuda
	@$(1)/bin/python -m $(INSTALL) \
		--no-deps --only-binary :all: --require-hashes -r requirements-sandbox.lock
	@echo "Setting up $(1) (3 of 3: this course)"
	@$(1)/bin/python -m $(INSTALL) \
		--no-deps --no-build-isolation -e .
	@$(1)/bin/python -m pip check
	@touch $@
endef

.venv/.installed: requirements.lock requirements-cuda.lock requirements-sandbox.lock pyproject.toml
	$(call set-up,.venv,requirements.lock)

.venv/.browser: .venv/.installed requirements-browser.lock
	@$(RUN) -m $(INSTALL) -r requirements-browser.lock
	@touch $@

.venv/.cluster: .venv/.installed requirements-cluster.lock
	@$(RUN) -m $(INSTALL) -r requirements-cluster.lock
	@touch $@

.venv-colab/.installed: requirements-colab.lock requirements-cuda.lock requirements-sandbox.lock pyproject.toml
	$(call set-up,.venv-colab,requirements-colab.lock,-r)

.venv-newest/.installed: requirements-newest.lock requirements-cuda.lock requirements-sandbox.lock pyproject.toml
	$(call set-up,.venv-newest,requirements-newest.lock)

.site/.installed: $(WHEELS) tools/wheelhouse.py
	@$(PYTHON) tools/wheelhouse.py install wheelhouse .site
	@touch $@
