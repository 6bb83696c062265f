import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.foundation.loops.kernel_ascent import ascend_block, ascend_coupled_block, row_shares
from reference import block_twin as twin

_GROUP = 16  # labels whose sweeps end together when labels are independent


def _problem(seed, n_rows, n_labels, dtype=np.float64):
    """A block in the middle of a run: K, R, and targets, scores, beta, lower and upper."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 3))
    X[random.random(n_rows) < 0.1] = 0  # rows without variance
    factor = random.normal(size=(n_labels, 2)) * (random.random((n_labels, 1)) < 0.9)
    R = factor @ factor.T + np.diag(random.uniform(0, 1, n_labels) * factor.any(axis=1))
    signs = random.choice([-1.0, 0.0, 1.0], (n_rows, n_labels))
    width = random.uniform(0, 2, (n_rows, 1))
    lower, upper = np.minimum(width * signs, 0), np.maximum(width * signs, 0)
    beta = np.clip(random.normal(size=signs.shape), lower, upper)
    targets, scores = signs * random.uniform(0.5, 2, signs.shape), random.normal(size=signs.shape)
    box = [np.ascontiguousarray(part, dtype) for part in (targets, scores, beta, lower, upper)]
    return (X @ X.T).astype(dtype), R.astype(dtype), box


def _value(K, R, box, beta):
    """The dual's change since the visit began."""
    targets, scores, start, _, _ = box
    change = beta - start
    return ((targets - scores) * change).sum() - 0.5 * ((K @ change @ R) * change).sum()


_SIZES = {
    "seed": st.integers(0, 2**32),
    "n_rows": st.integers(1, 9),
    "n_labels": st.sampled_from([1, 5, 16, 35]),
}


@settings(max_examples=40)
@given(**_SIZES, most_sweeps=st.sampled_from([1, 2, 16]))
def test_independent_labels_move_as_the_slow_twins(seed, n_rows, n_labels, most_sweeps):
    K, _, box = _problem(seed, n_rows, n_labels)
    beta, moved = box[2].copy(), np.full((n_rows, n_labels), np.nan)
    ascend_block(K, *box[:2], beta, *box[3:], moved, most_sweeps)
    for first in range(0, n_labels, _GROUP):
        some = slice(first, first + _GROUP)
        parts = [part[:, some] for part in box]
        expected = twin.ascend(K, np.eye(parts[0].shape[1]), *parts, most_sweeps)
        np.testing.assert_allclose(beta[:, some], expected[0], atol=1e-9)
        np.testing.assert_allclose(moved[:, some], expected[1], atol=1e-9)


@settings(max_examples=40)
@given(**_SIZES, most_sweeps=st.sampled_from([1, 2, 16]))
def test_coupled_labels_move_as_the_slow_twins(seed, n_rows, n_labels, most_sweeps):
    K, R, box = _problem(seed, n_rows, n_labels)
    beta, moved = box[2].copy(), np.full((n_rows, n_labels), np.nan)
    ascend_coupled_block(K, *box[:2], beta, *box[3:], moved, most_sweeps, R)
    expected = twin.ascend(K, R, *box, most_sweeps)
    np.testing.assert_allclose(beta, expected[0], atol=1e-8)
    np.testing.assert_allclose(moved, expected[1], atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=30)
@given(**_SIZES)
def test_a_visit_stays_in_the_box_and_raises_the_dual(dtype, seed, n_rows, n_labels):
    K, R, box = _problem(seed, n_rows, n_labels, dtype)
    for covariance, loop, more in ((np.eye(n_labels), ascend_block, ()), (R, ascend_coupled_block, (R,))):
        beta, moved = box[2].copy(), np.empty_like(box[2])
        loop(K, *box[:2], beta, *box[3:], moved, 8, *more)
        assert (box[3] <= beta).all()
        assert (beta <= box[4]).all()
        assert _value(K, covariance, box, beta) >= -1e3 * np.finfo(dtype).eps
        np.testing.assert_allclose(moved, (beta - box[2]) @ covariance, atol=1e-3)


@settings(max_examples=30)
@given(**_SIZES)
def test_shares_add_up_to_the_duality_gap(seed, n_rows, n_labels):
    _, _, box = _problem(seed, n_rows, n_labels)
    found = np.empty(n_rows)
    linear, quadratic, losses = row_shares(*box, found)
    np.testing.assert_allclose(found, twin.shares(*box), atol=1e-12)
    assert (found >= -1e-12).all()
    targets, scores, beta, _, _ = box
    np.testing.assert_allclose(
        [linear, quadratic], [(targets * beta).sum(), (beta * scores).sum()], atol=1e-10
    )
    np.testing.assert_allclose(found.sum(), losses + quadratic - linear, atol=1e-10)
