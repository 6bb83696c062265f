"""``verbose`` writes to stderr how far a fit is; without it nothing is written."""

import re

import numpy as np
import pytest
from sklearn.base import clone

from labelweave import (
    AutoLabelClassifier,
    BinaryRelevance,
    KernelLogisticClassifier,
    LabelGraphClassifier,
    LabelTreeClassifier,
    LowRankClassifier,
    LowRankClassifierCV,
    MaxMarginClassifier,
    ZeroShotClassifier,
)
from labelweave.estimators import progress_lines
from labelweave.estimators.progress_lines import FitCallback, FitLines

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 4))
Y = (X[:, :3] + 0.3 * RANDOM.normal(size=(60, 3)) > 0).astype(int)
MODELS = [
    MaxMarginClassifier(), MaxMarginClassifier(hyperparameters="learn", coupling="full"),
    KernelLogisticClassifier(max_learning_iter=3), LowRankClassifier(2),
    LowRankClassifierCV(ranks=[2]), LabelGraphClassifier(max_rounds=2, tol=0.1), BinaryRelevance(),
    LabelTreeClassifier(leaf_size=1, branching=2), AutoLabelClassifier(members=["linear"]),
    ZeroShotClassifier(None, np.eye(3, dtype=int), temperature=1.0),
]  # fmt: skip


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """No line for the time that a fit takes on a busy machine."""
    monkeypatch.setattr(progress_lines, "_QUIET_SECONDS", 3600.0)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_estimator_says_how_far_it_is(model, capfd):
    name = type(model).__name__
    clone(model).fit(X, Y)
    assert capfd.readouterr() == ("", "")
    quiet = clone(model).fit(X, Y)
    told = clone(model).set_params(verbose=True).fit(X, Y)
    out, err = capfd.readouterr()
    assert out == ""
    assert re.fullmatch(rf"labelweave: {name}, \d+\.\d s: [\w ]+\n", err)
    scores = "predict_proba" if isinstance(model, ZeroShotClassifier) else "decision_function"
    np.testing.assert_array_equal(getattr(told, scores)(X), getattr(quiet, scores)(X))
    clone(model).set_params(verbose=2).fit(X, Y)
    lines = capfd.readouterr().err.splitlines()
    assert all(line.startswith(f"labelweave: {name}, ") for line in lines)
    assert (len(lines) > 1) == (not isinstance(model, BinaryRelevance))


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
