"""The low-rank classifier on Dask's collections equals the ordinary one."""

from functools import partial

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import dask
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
    is_single = settings.get("precision") == "float32"
    share = (
        1e-3 if is_single else 1e-6 if "loss" in settings else 1e-7
    )  # steps of losses are in single precision
    assert model.objective_ == pytest.approx(whole.objective_, rel=share)
    assert np.allclose(model.coef_, whole.coef_, atol=10 * share)
    assert np.allclose(model.intercept_, whole.intercept_, atol=10 * share)
    assert model.duality_gap_ == pytest.approx(whole.duality_gap_, abs=1e-4, nan_ok=True)
    assert np.array_equal(model.predict(chunks(X)).compute(), model.predict(X))


def test_sparse_blocks_weights_and_the_same_bits(client):
    X, Y = table()
    parts = [dask.delayed(sp.csr_array(part)) for part in np.split(X, [20, 50])]
    labels = [dask.delayed(part) for part in np.split(with_holes(Y), [20, 50])]
    weights = chunks(np.random.default_rng(0).uniform(0.5, 2, len(X)))
    first, second = (LowRankClassifier(rank=3).fit(parts, labels, sample_weight=weights) for _ in range(2))
    whole = lw.LowRankClassifier(rank=3).fit(sp.csr_array(X), with_holes(Y), sample_weight=weights.compute())
    assert np.array_equal(first.feature_factors_, second.feature_factors_)
    assert first.objective_ == pytest.approx(whole.objective_, rel=1e-7)


def test_frames_classes_and_model_files(client, reloaded):
    X, Y = table()
    rows = pd.DataFrame(X, columns=[f"f{place}" for place in range(X.shape[1])])
    frames = (dd.from_pandas(part, npartitions=3, sort=False) for part in (rows, pd.DataFrame(Y.astype(int))))
    model = LowRankClassifier(rank=2).fit(*frames)
    assert np.array_equal(reloaded(model).predict(rows), model.predict(rows))
    assert list(model.feature_names_in_) == list(rows.columns)
    y = np.array(["a", "b", "c"])[X[:, :3].argmax(axis=1)]
    of_classes = LowRankClassifier(rank=2).fit(chunks(X), chunks(y))
    assert set(of_classes.predict(chunks(X)).compute()) <= {"a", "b", "c"}


def test_one_row_one_label_and_a_label_that_nobody_has(client):
    X, Y = table()
    Y[:, 2] = 0
    sizes = (1, 0, 59)
    model = LowRankClassifier(rank=2).fit(chunks(X, sizes=sizes), chunks(Y, sizes=sizes))
    assert not model.predict(X)[:, 2].any()
    one = LowRankClassifier().fit(chunks(X[:1], sizes=(1,)), chunks(Y[:1, :1], sizes=(1,)))
    assert one.predict(X[:2]).shape == (2, 1)
