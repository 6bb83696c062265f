"""What holds for every baseline: forms of input and output, model files, errors."""

from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import labelweave
from drawn import draw_labels
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


_data = partial(draw_labels, n=40, kept=0.8)


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
