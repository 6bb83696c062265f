# The two commands of the README are `make demo` and `make test`; `make help` lists all.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CORE := $(VENV)/.core-installed

# Bytecode is kept wherever make runs: else each process compiles all modules and the assertions of tests again.
unexport PYTHONDONTWRITEBYTECODE

# A test that hangs shows where, and fails.
NO_HANGS := -o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true --max-worker-restart=0

# The compiled loops, made once for all processes that run tests; Numba looks at the file of a loop alone.
COMPILED := $(VENV)/.compiled
LOOPS := $(shell find src/labelweave/foundation/loops -name '*.py')

PEERS := .venv-peers/pyvenv.cfg
BENCHMARK_PROBLEM := $(if $(wildcard ../shared/data/rcv1),rcv1,debtags)

# What a model shares with scikit-learn, for the oldest version of it that is supported.
OLDEST := .venv-oldest
OLDEST_TESTS := tests/test_package.py tests/metrics tests/splits tests/contracts/test_scikit_learn.py \
	tests/estimators/test_class_weight.py tests/estimators/test_verbose.py tests/model_files/test_pipelines.py

# The core's own tests, and the environment that has nothing else.
ALONE := .venv-core
CORE_TESTS := $(filter-out tests/app tests/attacks tests/dask tests/docs tests/examples tests/papers tests/typing, \
	$(patsubst %/,%,$(filter %/,$(wildcard tests/*/))))

.PHONY: demo help test core slow portable contracts boundscheck coverage mutants docs browser lint papers benchmark peers oldest sdist clean

# Files that are commands where the first lines of their docstring say how they are called.
COMMANDS := attacks/*.py benchmarks/__main__.py benchmarks/before_after.py examples/*.py scripts/*.py

## the README's example, in a minute once labelweave and what it needs, some 500 MB, are in .venv
demo: $(CORE)
	$(BIN)/labelweave demo

## this list: lines with ## above targets, then commands with the first lines of their docstrings
help:
	@awk 'function tell(command) { print command; for (i = 1; i <= n; i++) print "    " says[i]; n = 0 } \
		/^## / { says[++n] = substr($$0, 4); next } \
		FILENAME == "Makefile" && n { sub(/:.*/, ""); tell("make " $$0) } \
		FNR == 1 && /^"""/ { n = 1; says[1] = substr($$0, 4); sub(/"""$$/, "", says[1]) } \
		n && /^ *([A-Z_]+=[^ ]+ )*python (-m|examples|scripts)/ { \
			sub(/^ +/, ""); sub(/python /, "$(BIN)/&"); sub(/  +#/, "  #"); tell($$0) }' Makefile $(COMMANDS)

## the tests, in five minutes on two cores; a minute or two more where no loop is compiled yet.
## PYTEST_ARGS="tests/labels -x" takes some, PYTEST_ARGS=--hypothesis-profile=search other random examples.
## LABELWEAVE_SCREENSHOTS=shots make test PYTEST_ARGS=tests/app/report keeps pictures of the page in shots/.
test: $(COMPILED)
	$(BIN)/python -m pytest -m "not slow and not search" -n 2 --dist loadfile $(NO_HANGS) $(PYTEST_ARGS)

$(COMPILED): $(STAMP) $(LOOPS)
	find src -name '*.nb[ic]' -delete
	@echo "The loops are compiled, which takes a minute or two, once."
	$(BIN)/python -m attacks.bounds --compile
	touch $@

## tests that take long: compilers on an empty cache, killed fits, large inputs, what tests/slow_tests.txt
## names, some 0.2 s of CPU or more each; of many a first case stays with the fast ones
slow: $(COMPILED)
	$(BIN)/python -m pytest -m "slow and not search" -n 2 --dist loadfile $(NO_HANGS) tests $(PYTEST_ARGS)

## the tests as other machines run them, five minutes a line: in other folders, with code for other processors,
## one core, four threads, another locale, time zone and user, backwards, with other versions of Python.
## PORTABLE_ARGS=--short, a step of .ci/run: the numerical folders alone, in three to eight minutes.
portable: $(STAMP)
	$(BIN)/python -m attacks.portable $(PORTABLE_ARGS)

## the core with nothing but what it needs: no click, rich, jinja2, pandas, matplotlib or Dask; three minutes
core: $(ALONE)/.installed
	LABELWEAVE_CORE_ALONE=1 $(ALONE)/bin/python -m pytest -m "not slow and not search" -n 2 --dist loadfile \
		$(NO_HANGS) -p no:cacheprovider $(CORE_TESTS) $(PYTEST_ARGS)

$(ALONE)/.installed: pyproject.toml
	$(PYTHON) -m venv $(ALONE)
	$(ALONE)/bin/python -m pip install --quiet --editable . pytest pytest-xdist hypothesis
	touch $@

## random inputs against the contracts of all public names, damaged model files and killed fits, at length
contracts: $(STAMP)
	$(BIN)/python -m pytest -m search -n 2 tests $(PYTEST_ARGS)

## every compiled loop with Numba's checks of bounds, in a cache of its own
boundscheck: $(STAMP)
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/.numba-boundscheck $(BIN)/python -m attacks.bounds

# Loops run as plain Python and, for what writes LLVM code, while they are compiled.
## lines and branches that the tests run, of commands and compiled loops too; the gaps by name
coverage: $(STAMP)
	rm -rf .coverage* .numba-coverage
	-$(BIN)/python -m pytest -m "not slow and not search" -n 2 --dist loadfile --cov --cov-context=test --cov-report= \
		--junit-xml=.coverage-times.xml $(PYTEST_ARGS)
	mv .coverage .coverage.tests
	NUMBA_DISABLE_JIT=1 $(BIN)/coverage run -m attacks.plain_loops
	NUMBA_CACHE_DIR=$(CURDIR)/.numba-coverage $(BIN)/coverage run -m attacks.plain_loops
	$(BIN)/coverage combine
	$(BIN)/coverage report
	$(BIN)/python -m attacks.coverage

## 500 changes of the mathematics in one place each: those that no fast test notices; after make coverage
mutants: $(STAMP)
	$(BIN)/python -m pip install --quiet --group mutants
	$(BIN)/python -m attacks.mutants

## the site, in docs/_build: pages, reference, examples, the tutorial as a notebook; needs no network to be read.
## Every example runs, links inside are checked, and that no page is wider than a phone; warnings are errors.
## LABELWEAVE_SCREENSHOTS=shots keeps pictures of its pages in shots/.
docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --group docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build
	$(BIN)/python scripts/site_links.py docs/_build
	$(BIN)/python -m pytest -q tests/docs/test_site_in_browser.py
	@echo "the site is docs/_build/index.html"

## a headless Chromium, where apt-get may install one, for tests that look at pages; they skip without
browser:
	@for name in chromium-headless-shell chromium chromium-browser google-chrome; do \
		if command -v $$name >/dev/null; then echo "the browser is $$name"; exit 0; fi; \
	done; \
	export DEBIAN_FRONTEND=noninteractive; \
	timeout 120 apt-get update -qq && timeout 600 apt-get install -y -qq --no-install-recommends \
		chromium-headless-shell fonts-dejavu-core >/dev/null

## ruff format and check, mypy, import layers, docstrings
lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/validate_docstrings.py

# Left out: its own checks of sample weights, which differ from today's, and two of ConformalLabelClassifier around
# its LogisticRegression, which is handed one class alone in one of them, and rounds a row across a threshold in the other.
## what is shared with scikit-learn, on the oldest versions that pyproject.toml allows of what is needed,
## for tables, pictures and graphs too
oldest: $(OLDEST)/.installed
	$(OLDEST)/bin/python -m pytest -m "not slow and not search" -W "ignore::DeprecationWarning" \
		-k "not sample_weight_equivalence and not \
			(Conformal and (n_features_in_after_fitting or subset_invariance))" $(PYTEST_ARGS) $(OLDEST_TESTS)

$(OLDEST)/.installed: pyproject.toml
	test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(OLDEST)/bin/python -m pip install --quiet --editable ".[app]" \
		"numpy==2.0.*" "scipy==1.13.*" "scikit-learn==1.6.*" "numba==0.61.*" "safetensors==0.5.*" "rich==13.7.*" \
		"click==8.1.*" "jinja2==3.1.*" "threadpoolctl==3.5.*" "pandas==2.2.*" "pyarrow==16.*" "matplotlib==3.9.*" \
		"networkx==3.2.*" "pytest>=8.3,<9" hypothesis polars array-api-strict
	touch $@

## an sdist, and tests run from what it unpacks to
sdist: $(STAMP)
	$(BIN)/python scripts/check_sdist.py

## the papers' tables, figures and pages measured anew, half a day.
## PAPERS_ARGS=--list says what and how long, --go-on goes on, "--only usps" measures one.
papers: $(STAMP)
	$(BIN)/python -m benchmarks.papers $(PAPERS_ARGS)
	$(BIN)/python -m pytest -q tests/docs/test_papers.py

## speed against LIBLINEAR, PECOS and scikit-learn, on RCV1 where it is at hand.
## Other measurements are .venv/bin/python -m benchmarks.NAME; docs/benchmarks.md names them.
benchmark: $(STAMP) $(PEERS)
	$(BIN)/python -m benchmarks.margin_speed --problem $(BENCHMARK_PROBLEM) $(BENCHMARK_ARGS)

## the environment of the other programs anew; needs Python 3.11 on x86-64 Linux and a C++ compiler
peers: $(STAMP)
	$(BIN)/python benchmarks/peers/make_environment.py

$(PEERS):
	$(MAKE) peers

# What labelweave itself needs, which is enough for the demo.
$(CORE): pyproject.toml
	@echo "Installing labelweave and what it needs into $(VENV), some 500 MB on disk: NumPy, SciPy, scikit-learn, Numba."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable . click rich
	touch $@

$(STAMP): pyproject.toml $(CORE)
	@echo "Installing the optional parts and the tools of tests: pandas, pyarrow, matplotlib, Dask, pytest and others."
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[all]" --group dev
	touch $@

## removes environments, builds and caches
clean:
	rm -rf $(VENV) $(ALONE) $(OLDEST) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
