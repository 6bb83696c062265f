"""Features too large for any estimator are refused with their place; large ones give finite scores."""

import numpy as np
import pytest
import scipy.sparse as sp
from attacks.world import World

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
WORLD = World(0)
ESTIMATORS = WORLD.estimators()


def _scores(model, X):
    return model.predict_proba(X) if hasattr(model, "temperature") else model.decision_function(X)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_features_beyond_the_range_are_refused_by_place(name, kind):
    row, column = np.argwhere(WORLD.X)[0]
    with pytest.raises(ValueError, match=r"at row \d+, column \d+; pass features up to 1e\+40"):
        ESTIMATORS[name].fit(kind(1e200 * WORLD.X), WORLD.Y)
    X = WORLD.X.copy()
    X[row, column] = 1e300
    place = rf"Input X contains 1e\+300 at row {row}, column {column}; pass features up to 1e\+40 in size"
    model = WORLD.fitted(name)
    for call in (lambda rows: WORLD.estimators()[name].fit(rows, WORLD.Y), lambda rows: _scores(model, rows)):
        with pytest.raises(ValueError, match=place if name != "ZeroShot" else "Input X contains 1e\\+300"):
            call(kind(X))


@pytest.mark.parametrize("size", [1e20, 9e39])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_large_features_give_finite_scores(name, size):
    X = size * WORLD.X / np.abs(WORLD.X).max()
    scores = _scores(WORLD.estimators()[name].fit(X, WORLD.Y), X)
    assert np.isfinite(scores).all()
