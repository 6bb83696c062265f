# The two commands of the README are `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

PEERS := .venv-peers/pyvenv.cfg
BENCHMARK_PROBLEM := $(if $(wildcard ../shared/data/rcv1),rcv1,debtags)

.PHONY: demo test slow boundscheck browser lint papers benchmark peers clean

demo: $(STAMP)
	$(BIN)/labelweave demo

test: $(STAMP)
	$(BIN)/python -m pytest -m "not paper and not slow" -n 2 --dist loadfile $(PYTEST_ARGS)

slow: $(STAMP)
	$(BIN)/python -m pytest -m slow -n 2 --dist loadfile tests $(PYTEST_ARGS)

# Every compiled loop with checks of its indices, in a cache of its own.
boundscheck: $(STAMP)
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/.numba-boundscheck $(BIN)/python -m attacks.bounds

# A headless Chromium for the tests that look at the report, where apt-get may install one; they skip without it.
browser:
	@for name in chromium-headless-shell chromium chromium-browser google-chrome; do \
		if command -v $$name >/dev/null; then echo "the browser is $$name"; exit 0; fi; \
	done; \
	export DEBIAN_FRONTEND=noninteractive; \
	timeout 120 apt-get update -qq && timeout 600 apt-get install -y -qq --no-install-recommends \
		chromium-headless-shell fonts-dejavu-core >/dev/null

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/validate_docstrings.py

papers: $(STAMP)
	$(BIN)/python -m pytest -m paper $(PYTEST_ARGS)

# labelweave against LIBLINEAR, PECOS and scikit-learn; on the RCV1 subsets where they are at hand.
benchmark: $(STAMP) $(PEERS)
	$(BIN)/python -m benchmarks.linear_speed --problem $(BENCHMARK_PROBLEM) \
		--out benchmarks/results/linear_speed_$(BENCHMARK_PROBLEM).json $(BENCHMARK_ARGS)

# The peers' environment anew; needs Python 3.11 on x86-64 Linux and a C++ compiler.
peers: $(STAMP)
	$(BIN)/python benchmarks/peers/make_environment.py

$(PEERS):
	$(MAKE) peers

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[all]" --group dev
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
