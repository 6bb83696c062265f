"""What scikit-learn's callbacks are told of fits: gaps, training data, and models to score."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from labelweave import (
    KernelLogisticClassifier,
    LabelGraphClassifier,
    LowRankClassifier,
    MaxMarginClassifier,
)
from watching import Watch

MODELS = {
    "linear margin": MaxMarginClassifier(tol=1e-3),
    "kernel margin": MaxMarginClassifier(kernel="rbf", tol=1e-3, threshold="f1"),
    "block ascent": MaxMarginClassifier(kernel="rbf", tol=1e-4, solver="block_ascent"),
    "pairs": MaxMarginClassifier(kernel="rbf", tol=1e-4, solver="working_set"),
    "logistic": KernelLogisticClassifier(max_learning_iter=3),
    "low rank": LowRankClassifier(2),
    "given graph": LabelGraphClassifier(graph="none"),
}


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 5))
    return X, (X @ random.normal(size=(5, 3)) > 0).astype(int), random.uniform(0.5, 2, 60)


@pytest.mark.parametrize(
    "name", ["linear margin", "block ascent", "pairs", "logistic", "low rank", "given graph"]
)
def test_the_last_check_has_the_model_about_as_it_ends(name, rows):
    X, Y, _ = rows
    watch = Watch()
    model = clone(MODELS[name]).set_callbacks(watch).fit(X, Y)
    steps = [
        fitted for context, *_, fitted in watch.seen if context.parent is not None and fitted is not None
    ]
    assert len(steps) >= 2
    scores = [np.abs(fitted.decision_function(X) - model.decision_function(X)).max() for fitted in steps]
    assert scores[-1] < 0.2
    assert scores[-1] < 0.5 * max(scores) or max(scores) < 1e-6


@pytest.mark.parametrize("name", ["linear margin", "kernel margin", "logistic", "given graph"])
def test_callbacks_get_the_gap_of_every_step(name, rows):
    watch = Watch()
    model = MODELS[name].set_callbacks(watch).fit(*rows[:2])
    model.set_callbacks()
    steps = [entry for entry in watch.seen if entry[0].task_name.startswith("duality gap")]
    gaps = [metadata.get("gap") for _, _, _, metadata, _ in steps]
    assert len(steps) >= 10
    known = [gap for gap in gaps if gap is not None]
    assert len(known) >= len(gaps) / 2  # steps that a part's fit did not take have none
    # the last gap is of the same variables, its sums are computed anew: they may differ by rounding
    assert model.duality_gap_ * (1 - 1e-9) <= known[-1] <= 10 * model.duality_gap_
    assert known[0] > known[-1]
    root, X, y, metadata, fitted = watch.seen[-1]
    assert root.parent is None
    assert X is rows[0]
    assert y is rows[1]
    assert metadata["gap"] == model.duality_gap_
    assert metadata["iteration"] == model.trace_[-1].iteration
    assert metadata.get("colour") is None
    with pytest.raises(KeyError):
        metadata["colour"]
    np.testing.assert_array_equal(fitted.predict(X), model.predict(X))
