# Each target sets up .venv by itself; nothing needs to be installed first but Python 3.11 or later.
PYTHON ?= python3
BIN := .venv/bin
TORCH ?= torch==2.13.0
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check
ARGS ?=
GPU_JOBS ?= 10
# Every test computes on one core; two processes take the files in turn.
TOGETHER := -n 2 --dist loadfile

.PHONY: demo docs test test-gpu check lock notebooks clean

demo: .venv/ready  ## train a translator on the built-in corpus, score it, see where it looks
	$(BIN)/saccade demo $(ARGS)

docs: .venv/ready  ## the documentation as a site that works offline: build/docs/index.html
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --fresh-env docs build/docs
	@echo "open build/docs/index.html"

test: .venv/ready  ## every test
	$(BIN)/pytest $(TOGETHER) $(ARGS)

test-gpu: .venv/ready  ## what runs on an NVIDIA GPU; skips without one. On a small GPU: GPU_JOBS=2
	$(BIN)/pytest tests/gpu -n $(GPU_JOBS) --dist loadgroup -rs -vv $(ARGS)

check: .venv/ready  ## format, lint, types and the fast tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/pytest -m "not slow" $(TOGETHER) $(ARGS)

# What is installed has the hashes of constraints.txt, and brings nothing along; setuptools goes first,
# to build what has no wheel. torch has no hash there (it says why), but what it needs is there by then.
.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	sed -n '/^setuptools==/,/[^\\]$$/p' constraints.txt > .venv/setuptools.txt
	$(INSTALL) --no-deps --require-hashes -r .venv/setuptools.txt
	$(INSTALL) --no-deps --require-hashes --no-build-isolation -r constraints.txt
	$(INSTALL) "$(TORCH)"
	$(INSTALL) --no-deps --no-build-isolation -e .
	$(BIN)/pip check --quiet
	touch $@

lock: .venv/ready  ## the hashes of the versions in constraints.txt, as PyPI has them
	$(BIN)/python tools/lock.py

notebooks: .venv/ready  ## the lectures' notebooks, run from top to bottom and stored with what they show
	$(BIN)/python tools/notebooks.py

clean:
	rm -rf .venv
