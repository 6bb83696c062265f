"""Close the figures after every test; skip without matplotlib."""

import pytest

plt = pytest.importorskip("matplotlib.pyplot", exc_type=ImportError)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")
