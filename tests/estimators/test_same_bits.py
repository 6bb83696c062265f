"""Fits and scores have the same bits for any number of threads of the linear algebra library."""

import numpy as np
import pytest
import scipy.sparse as sp
from attacks.small_fits import KINDS, data_of, fitted, mark
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from labelweave import BinaryRelevance, LowRankClassifier, MaxMarginClassifier

ROWS, FEATURES = 300, 40  # so many that the library uses several threads
QUICK = ("margins, rbf", "low rank, logistic", "ridge of labels")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in KINDS]
)
def test_fits_and_scores_have_the_same_bits_for_any_number_of_threads(name):
    X, Y = data_of(name, ROWS, FEATURES)
    many = data_of(name, 2000, FEATURES, seed=1)[0]
    marks = []
    for threads in (1, 2, 5):
        with threadpool_limits(threads):
            marks.append(mark(fitted(clone(KINDS[name]), X, Y), many))
    assert marks == marks[:1] * 3


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        MaxMarginClassifier(max_iter=2),
        MaxMarginClassifier(kernel="rbf", max_iter=2),
        LowRankClassifier(20, max_iter=2),
        LowRankClassifier(20, kernel="polynomial", max_iter=2),
        BinaryRelevance(),
    ],
    ids=str,
)
def test_scores_of_many_labels_have_the_same_bits(model, sparse):
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 120)) * (random.random((500, 120)) < 0.3)
    Y = (X @ random.normal(size=(120, 200)) > 3).astype(int)
    X = sp.csr_array(X) if sparse else X
    fitted(model, X, Y)
    scores = []
    for threads in (1, 2, 5):
        with threadpool_limits(threads):
            scores.append(model.decision_function(X))
    np.testing.assert_array_equal(scores[1], scores[0])
    np.testing.assert_array_equal(scores[2], scores[0])
