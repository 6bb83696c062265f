"""``verbose`` writes to stderr how far a fit is; without it nothing is written."""

import numpy as np
import pytest

from labelweave import (
    MaxMarginClassifier,
)
from labelweave.estimators import progress_lines
from labelweave.estimators.progress_lines import FitCallback, FitLines

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 4))
Y = (X[:, :3] + 0.3 * RANDOM.normal(size=(60, 3)) > 0).astype(int)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """No line for the time that a fit takes on a busy machine."""
    monkeypatch.setattr(progress_lines, "_QUIET_SECONDS", 3600.0)


def test_slow_fits_have_lines_meanwhile(capfd):
    lines = FitLines("a model", is_every=False)
    lines.seconds = 0.0
    MaxMarginClassifier().set_callbacks(lines).fit(X, Y)
    assert "gap about" in capfd.readouterr().err


def test_callbacks_of_the_user_stay(capfd):
    class Counts(FitCallback):
        fits = 0

        def setup(self, estimator, context):
            self.fits += 1

    counts = Counts()
    model = MaxMarginClassifier(verbose=1).set_callbacks(counts)
    model.fit(X, Y).fit(X, Y)
    assert counts.fits == 2
    assert model._skl_callbacks == [counts]
    assert len(capfd.readouterr().err.splitlines()) == 2
    with pytest.raises(ValueError, match="n_jobs"):
        MaxMarginClassifier(verbose=1, n_jobs=0.5).fit(X, Y)
    with pytest.raises(ValueError, match="verbose"):
        MaxMarginClassifier(verbose=-1).fit(X, Y)
