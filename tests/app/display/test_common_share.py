"""What all labels share is taken out of correlations, so that rare labels show who goes with whom."""

import numpy as np
import pytest

from labelweave.app.display.label_covariance_display import beyond_common_share, is_mostly_common
from labelweave.labels import LabelCovariance


def rare_labels(n_labels=60, n_rows=4000, seed=0):
    """Labels of a hundredth of the rows, every second one mostly with its neighbour."""
    rng = np.random.default_rng(seed)
    Y = rng.random((n_rows, n_labels)) < rng.uniform(0.005, 0.05, n_labels)
    together = rng.random((n_rows, n_labels // 2)) < 0.7
    Y[:, 1::2] = np.where(together, Y[:, ::2], Y[:, 1::2])
    return Y.astype(float)


def test_rare_labels_get_their_usual_correlations_back():
    Y = rare_labels()
    raw = LabelCovariance.from_labels(Y, centered=False).correlations()
    assert is_mostly_common(raw)
    found, usual = beyond_common_share(raw), np.corrcoef(Y, rowvar=False)
    pairs = np.triu_indices(60, 1)
    assert np.corrcoef(found[pairs], usual[pairs])[0, 1] > 0.98
    assert np.abs(found - usual).max() < 0.1
    assert abs(np.corrcoef(raw[pairs], usual[pairs])[0, 1]) < 0.5


def test_one_common_factor_leaves_nothing():
    shared = np.linspace(0.3, 0.95, 30)
    shared[::3] *= -1.0
    correlations = np.outer(shared, shared)
    np.fill_diagonal(correlations, 1.0)
    np.testing.assert_allclose(beyond_common_share(correlations), np.eye(30), atol=1e-4)


@pytest.mark.parametrize("n_labels", [1, 2, 5])
def test_independent_labels_stay_independent(n_labels):
    assert not is_mostly_common(np.eye(n_labels))
    np.testing.assert_array_equal(beyond_common_share(np.eye(n_labels)), np.eye(n_labels))


def test_labels_that_are_always_alike():
    found = beyond_common_share(np.ones((30, 30)))
    assert np.isfinite(found).all()
    assert np.abs(found).max() <= 1.0
