"""Ranks as numbers and as shares of the labels, for all models of two factors."""

import numpy as np
import pytest

from labelweave import LowRankClassifier, LowRankClassifierCV
from labelweave.estimators.low_rank.fit import columns_for_rank, largest_rank


@pytest.mark.parametrize(
    ("rank", "labels", "columns"),
    [(1, 10, 1), (7, 3, 7), (np.int64(4), 10, 4), (1.0, 10, 10), (0.25, 10, 2), (0.35, 10, 4), (0.01, 10, 1)],
)
def test_shares_are_rounded_and_at_least_one(rank, labels, columns):
    found = columns_for_rank(rank, labels)
    assert found == columns
    assert type(found) is int


@pytest.mark.parametrize("rank", [0.2, 0.5, 0.7, 1.0])
def test_all_models_read_a_share_in_the_same_way(rank):
    random = np.random.default_rng(0)
    X, Y = random.normal(size=(30, 9)), (random.random((30, 7)) < 0.4).astype(int)
    models = [
        LowRankClassifier(rank),
        LowRankClassifierCV([rank], [1.0], cv=2),
    ]
    columns = {model.fit(X, Y).label_factors_.shape[1] for model in models}
    assert columns == {columns_for_rank(rank, 7)}


def test_no_product_of_factors_has_a_larger_rank():
    assert largest_rank(50, 4, 20, True) == 5
    assert largest_rank(50, 4, 20, False) == 4
    assert largest_rank(3, 4, 20, True) == 3
    assert largest_rank(50, None, 20, True) == 20
    assert largest_rank(0, 0, 5, False) == 1
