# Each target sets up .venv by itself; nothing needs to be installed first but Python 3.11 or later.
PYTHON ?= python3
BIN := .venv/bin
ARGS ?=
# Every test computes on one core; two processes take the files in turn.
TOGETHER := -n 2 --dist loadfile

.PHONY: demo test test-gpu check clean

demo: .venv/ready  ## train a translator on the built-in corpus, score it, see where it looks
	$(BIN)/saccade demo $(ARGS)

test: .venv/ready  ## every test
	$(BIN)/pytest $(TOGETHER) $(ARGS)

test-gpu: .venv/ready  ## what runs on an NVIDIA GPU, on one; says so and skips without
	$(BIN)/pytest tests/gpu -n 6 --dist loadgroup -rs $(ARGS)

check: .venv/ready  ## format, lint, types and the fast tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/pytest -m "not slow" $(TOGETHER) $(ARGS)

# torch goes first and alone, so that no other package can bring a different build of it.
.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check "$$(grep '^torch==' constraints.txt)"
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf .venv
