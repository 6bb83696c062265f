"""What holds for every baseline: forms of input and output, model files, errors."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import labelweave
from labelweave.baselines import CPLST, PLST, WSABIE, BinaryRelevance

MODELS = [
    PLST(rank=2, regularization=0.1),
    CPLST(rank=2),
    WSABIE(rank=3),
    BinaryRelevance(),
    BinaryRelevance("logistic"),
    BinaryRelevance("squared_hinge", fit_intercept=False),
]
EVERY = pytest.mark.parametrize("model", MODELS, ids=str)


def _data(n=40, d=5, n_labels=4, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) * (random.random((n, d)) < 0.8)
    Y = (X @ random.normal(size=(d, n_labels)) + random.normal(size=(n, n_labels)) > 0.3).astype(int)
    return X, Y


@pytest.mark.parametrize(
    "model",
    [PLST(rank=0), CPLST(regularization=-1.0), WSABIE(schedule="step"), BinaryRelevance("hinge")],
    ids=str,
)
def test_bad_parameters_are_refused(model):
    with pytest.raises(ValueError, match="parameter of"):
        model.fit(*_data())


def test_parameters_can_be_searched():
    X, Y = _data()
    search = GridSearchCV(CPLST(), {"rank": [1, 4]}, cv=2).fit(X, Y)
    assert search.best_params_["rank"] in (1, 4)


def test_the_baselines_are_a_module_of_the_package():
    assert labelweave.baselines.PLST is PLST


@EVERY
def test_what_makes_scores_is_kept_as_a_scorer(model):
    X, Y = _data()
    fitted = clone(model).fit(X, Y)
    assert fitted.scorer_.intercept_ is fitted.intercept_
    scores = X @ fitted.coef_.T + fitted.intercept_ - fitted.threshold_
    np.testing.assert_allclose(fitted.decision_function(X), scores, atol=1e-9)
