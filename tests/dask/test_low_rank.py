"""The low-rank classifier on Dask's collections equals the ordinary one."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

import labelweave as lw
import partitioned
from drawn import draw_labels
from labelweave import LowRankClassifier

table = partial(draw_labels, d=12, n_labels=5, kept=0.5, noise=0, above=0.5, missing=0.0)


chunks = partial(partitioned.chunks, sizes=(20, 30, 10))


def with_holes(Y):
    Y = Y.copy()
    Y[::4, 1] = np.nan
    return Y


@pytest.mark.parametrize(
    ("settings", "holes"),
    [
        ({}, False),
        ({}, True),
        ({"loss": "log_loss", "max_iter": 3}, True),
        ({"penalty": "ridge"}, False),
        ({"penalty": "ridge", "rank": 1, "class_weight": "balanced"}, False),
        ({"class_weight": {0: 0.5}, "dtype": "float32", "fit_intercept": False}, False),
    ],
)
@pytest.mark.filterwarnings("ignore:The iteration limit")
def test_the_model_is_that_of_one_machine(client, settings, holes):
    X, Y = table()
    Y = with_holes(Y) if holes else Y
    settings = {"rank": 3, **settings}
    model = LowRankClassifier(**settings).fit(chunks(X), chunks(Y))
    # of sparse rows, as dense ones in memory take other steps, in their principal axes
    whole = lw.LowRankClassifier(**settings).fit(sp.csr_array(X), Y)
    is_single = settings.get("dtype") == "float32"
    share = (
        1e-3 if is_single else 1e-6 if "loss" in settings else 1e-7
    )  # steps of losses are in single precision
    assert model.objective_ == pytest.approx(whole.objective_, rel=share)
    assert np.allclose(model.coef_, whole.coef_, atol=10 * share)
    assert np.allclose(model.intercept_, whole.intercept_, atol=10 * share)
    assert model.duality_gap_ == pytest.approx(whole.duality_gap_, abs=1e-4, nan_ok=True)
    assert np.array_equal(model.predict(chunks(X)).compute(), model.predict(X))
