"""The label-graph classifier on Dask's collections has the optimum of the ordinary one, and its bits."""

import dask.array as da
import numpy as np
import pytest

import labelweave as lw
from labelweave.dask import LabelGraphClassifier

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(90, 6))
Y = (X @ RANDOM.normal(size=(6, 5)) + RANDOM.normal(size=(90, 5)) > 0).astype(float)
Y[:, 2] = Y[:, 0] != Y[:, 1]
MISSING = np.where(RANDOM.random(Y.shape) < 0.1, np.nan, Y)


def chunks(values):
    return da.from_array(values, chunks=((40, 20, 30), *values.shape[1:]))


CASES = {
    "learned": ({"max_rounds": 3}, Y),
    "measured": ({"max_rounds": 3, "early_stopping": True, "refit": True, "fit_intercept": False}, Y),
    "missing": ({"graph": "chow-liu", "max_iter": 20, "tol": 1e-2}, MISSING),
    "thresholds": ({"graph": "full", "threshold": "f1", "class_weight": "balanced", "tol": 1e-2}, Y),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_in_one_place_the_bits_are_those_in_memory(client, case):
    settings, labels = CASES[case]
    weights = np.arange(90) % 4 + 1.0
    model = LabelGraphClassifier(client, **settings).fit(chunks(X), chunks(labels), chunks(weights))
    whole = lw.LabelGraphClassifier(**settings).fit(X, labels, weights)
    for name in ("coef_", "clique_coef_", "intercept_", "thresholds_"):
        assert np.array_equal(getattr(model, name), getattr(whole, name))
    assert model.duality_gap_ == whole.duality_gap_
    assert model.label_graph_.cliques == whole.label_graph_.cliques
    assert np.array_equal(model.predict(chunks(X)).compute(), whole.predict(X))
