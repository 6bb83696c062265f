"""Shared by all tests: modules to import, settings of Hypothesis, the tests of `make slow`, a browser."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ["MPLBACKEND"] = "agg"  # no test opens a window
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # processes started in the background by a shell ignore Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1] / "scripts"))

# A loaded machine fails no test, and the same examples run every time.  For other examples in every
# run: `make contracts`, or any tests with `--hypothesis-profile=search`.
_CALM = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]
settings.register_profile("search", deadline=None, suppress_health_check=_CALM)
settings.register_profile("same", settings.get_profile("search"), derandomize=True)
settings.load_profile("same")


def pytest_addoption(parser):
    parser.addoption("--backwards", action="store_true", help="run the last test first")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark as slow what ``slow_tests.txt`` names: tests, cases, or with ``[...]`` all cases but the first."""
    listed = set((Path(__file__).parent / "slow_tests.txt").read_text().splitlines())
    seen = set()
    for item in items:
        test = item.nodeid.partition("[")[0]
        names = {test, item.nodeid, *([f"{test}[...]"] if test in seen else [])}
        seen.add(test)
        if not listed.isdisjoint(names):
            item.add_marker("slow")
    if config.getoption("--backwards"):
        items.reverse()


_BESIDE_THE_CORE = re.compile(
    r"No module named '(click|cvxpy|dask|distributed|matplotlib|networkx|pandas|polars|pyarrow|rdflib|rich|"
    r"scipy_doctest|wordllama|array_api_strict)|install labelweave\[(app|dask|text)\]"
)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Skip files that need more than the core in the environment of ``make core``."""
    report = yield
    return _skipped_where_missing(report, str(collector.path))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    return _skipped_where_missing(report, str(item.path))


def _skipped_where_missing(report, path):
    if "LABELWEAVE_CORE_ALONE" in os.environ and report.failed:
        needed = _BESIDE_THE_CORE.search(report.longreprtext)
        if needed:
            report.outcome, report.longrepr = "skipped", (path, 0, f"needs {needed[1] or needed[2]}")
    return report


BROWSERS = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Run the browser with some flags on a file; return its output."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip("no Chromium here; `make browser` installs one where apt-get can")
    home = tmp_path_factory.mktemp("browser")

    def call(page, *flags):
        words = [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        words += [f"--user-data-dir={home}", "--disable-dev-shm-usage", *flags, page.as_uri()]
        done = subprocess.run(words, capture_output=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr.decode()[-2000:]
        return done.stdout.decode()

    return call


@pytest.fixture
def reloaded(tmp_path):
    def call(model):
        import labelweave

        labelweave.save(model, tmp_path / "reloaded.lw")
        return labelweave.load(tmp_path / "reloaded.lw")

    return call
