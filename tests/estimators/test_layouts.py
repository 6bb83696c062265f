"""The layout of rows in memory changes no bit of a fit or a prediction."""

import numpy as np
import pytest
from sklearn.base import clone

from labelweave import KernelLogisticClassifier, LowRankClassifier, MaxMarginClassifier

MODELS = [
    MaxMarginClassifier(),
    MaxMarginClassifier(kernel="rbf"),
    KernelLogisticClassifier(hyperparameters="fixed"),
    LowRankClassifier(2),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_fits_and_scores_are_those_of_rows_in_c_order(model):
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 5))
    Y = (X @ random.normal(size=(5, 3)) > 0).astype(int)
    scores = []
    for layout in (np.ascontiguousarray, np.asfortranarray, lambda X: np.repeat(X, 2, axis=1)[:, ::2]):
        fitted = clone(model).fit(layout(X), Y)
        scores.append([fitted.decision_function(other(X)) for other in (np.copy, np.asfortranarray)])
    np.testing.assert_array_equal(scores, np.broadcast_to(scores[0][0], np.shape(scores)))
