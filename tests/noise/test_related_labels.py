"""Ridge regressions of labels on the others, against least squares one label at a time."""

import numpy as np
import pytest

from labelweave.noise.related_labels import _Part, relate_labels


def test_no_label_explains_itself_and_the_rest_is_ridge_regression():
    rng = np.random.default_rng(0)
    table, residuals, folds = rng.random((30, 5)), rng.normal(size=(30, 5)), np.arange(30) % 3
    part = _Part(table, residuals, folds, 1)
    found = part.matrix(0.7)
    rows = table[folds != 1] - table[folds != 1].mean(axis=0)
    for label in range(5):
        others = np.flatnonzero(np.arange(5) != label)
        A = rows[:, others]
        expected = np.linalg.solve(A.T @ A + 0.7 * np.eye(4), A.T @ residuals[folds != 1, label])
        assert found[others, label] == pytest.approx(expected, abs=1e-10)
        assert found[label, label] == 0.0


def test_evidence_is_the_sum_of_effects_and_the_better_table_is_taken():
    rng = np.random.default_rng(1)
    table = (rng.random((200, 4)) < 0.5).astype(float)
    residuals = 0.5 * (table[:, [1, 2, 3, 0]] - 0.5) + 0.1 * rng.normal(size=(200, 4))
    residuals[5, 2] = np.nan
    found = relate_labels(residuals, [rng.random((200, 4)), table], np.arange(200) % 4)
    assert found.known is table
    assert found.effects(7, 2).sum() == pytest.approx(found.evidence[7, 2])
    assert np.argmax(np.abs(found.effects(7, 2))) == 3
    assert np.isfinite(found.evidence).all()


def test_nothing_is_found_where_nothing_is():
    assert (
        relate_labels(np.zeros((20, 3)), [np.random.default_rng(0).random((20, 3))], np.arange(20) % 4)
        is None
    )
