"""``verbose`` writes the progress of a fit to stderr; without it nothing is written."""

import re

import numpy as np
import pytest
from attacks.small_fits import EVERY, mark

from labelweave import MaxMarginClassifier
from labelweave.estimators import progress_lines
from labelweave.estimators.progress_lines import FitCallback, FitLines
from small_models import data, fit_once, kinds, model, takes

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 4))
Y = (X[:, :3] + 0.3 * RANDOM.normal(size=(60, 3)) > 0).astype(int)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """No line for the time that a fit takes on a busy machine."""
    monkeypatch.setattr(progress_lines, "_QUIET_SECONDS", 3600.0)


@kinds(takes("verbose"))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_says_how_far_it_is_where_it_is_asked(name, capfd):
    rows, targets = data(name)
    kind = type(EVERY[name]).__name__
    model(name).fit(rows, targets)
    assert capfd.readouterr() == ("", "")
    told = model(name, verbose=True).fit(rows, targets)
    out, err = capfd.readouterr()
    assert out == ""
    assert re.fullmatch(rf"labelweave: {kind}, \d+\.\d s: [\w ]+\n", err)
    assert mark(told, rows) == mark(fit_once(name), rows)
    model(name, verbose=2).fit(rows, targets)
    lines = capfd.readouterr().err.splitlines()
    assert all(line.startswith(f"labelweave: {kind}, ") for line in lines)
    assert (len(lines) > 1) == (kind != "BinaryRelevance")
    with pytest.raises(ValueError, match="verbose"):
        model(name, verbose=-1).fit(rows, targets)


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
