"""Binary relevance: forms of input and output, model files, errors, scikit-learn's own checks."""

from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from drawn import draw_labels
from labelweave import BinaryRelevance

MODELS = [
    BinaryRelevance(),
    BinaryRelevance("logistic"),
    BinaryRelevance("squared_hinge", fit_intercept=False),
]
EVERY = pytest.mark.parametrize("model", MODELS, ids=str)


_data = partial(draw_labels, n=40, kept=0.8)


def test_bad_parameters_are_refused():
    with pytest.raises(ValueError, match="parameter of"):
        BinaryRelevance("hinge").fit(*_data())


def test_parameters_can_be_searched():
    X, Y = _data()
    search = GridSearchCV(BinaryRelevance(), {"regularization": [1.0, 4.0]}, cv=2).fit(X, Y)
    assert search.best_params_["regularization"] in (1.0, 4.0)


@EVERY
def test_what_makes_scores_is_kept_as_a_scorer(model):
    X, Y = _data()
    fitted = clone(model).fit(X, Y)
    assert fitted.scorer_.intercept_ is fitted.intercept_
    scores = X @ fitted.coef_.T + fitted.intercept_ - fitted.threshold_
    np.testing.assert_allclose(fitted.decision_function(X), scores, atol=1e-9)


@parametrize_with_checks([BinaryRelevance("logistic"), BinaryRelevance("squared_hinge")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
