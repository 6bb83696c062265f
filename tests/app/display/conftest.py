"""Every test closes the figures that it opened; without matplotlib there is nothing to draw with."""

import pytest

plt = pytest.importorskip("matplotlib.pyplot", exc_type=ImportError)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")
