"""Given thresholds of our own estimators, and the rows held out to choose some."""

import numpy as np
import pytest

import labelweave as lw
from drawn import draw_own
from labelweave.estimators.held_out import count_parts, held_out_parts


@pytest.fixture(scope="module")
def rows():
    return draw_own(300, 6, 4, above=[0.3, 0.9, 1.2, 1.5])


def test_a_given_probability_is_the_threshold(rows):
    X, Y = rows
    plain, given = (
        lw.KernelLogisticClassifier(hyperparameters="fixed", threshold=choice).fit(X, Y)
        for choice in ("auto", 0.3)
    )
    np.testing.assert_array_equal(given.predict_proba(X), plain.predict_proba(X))
    np.testing.assert_array_equal(given.predict(X), plain.predict_proba(X) > 0.3)
    np.testing.assert_array_equal(given.thresholds_, 0.3)


def test_a_given_score_is_the_threshold(rows):
    X, Y = rows
    plain, given = (lw.MaxMarginClassifier(threshold=choice).fit(X, Y) for choice in ("auto", -0.5))
    np.testing.assert_array_equal(given.predict(X), plain.decision_function(X) > -0.5)


@pytest.mark.parametrize(
    ("n_rows", "share", "parts"), [(57, "auto", 5), (3, "auto", 3), (5001, "auto", 1), (57, 0.1, 1)]
)
def test_which_rows_are_held_out(n_rows, share, parts):
    labels = lw.LabelMatrix(np.random.default_rng(0).random((n_rows, 2)) < 0.3)
    found = held_out_parts(labels, share, 0)
    assert len(found) == count_parts(share, n_rows) == parts
    for kept, held in found:
        np.testing.assert_array_equal(np.sort(np.concatenate([kept, held])), np.arange(n_rows))
    scored = np.concatenate([held for _, held in found])
    expected = n_rows if parts > 1 else round((0.2 if share == "auto" else share) * n_rows)
    assert len(np.unique(scored)) == len(scored) == expected
