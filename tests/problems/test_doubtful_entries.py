"""All forms of the entries compute the same numbers for uncertain targets."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelMatrix
from labelweave.problems.label_entries import DenseEntries, EntryTable, EntryWeights
from labelweave.problems.label_entries.base import listed_signs, read_flips
from labelweave.problems.losses.entry_losses import GradedEntryLoss, SquaredEntryLoss, SquaredHingeEntryLoss
from labelweave.problems.low_rank_factors import RowsLoss


def _targets(seed=0):
    rng = np.random.default_rng(seed)
    table = np.where(rng.random((9, 5)) < 0.5, rng.choice([0.0, 1.0, 0.5], (9, 5)), rng.random((9, 5)))
    return rng, table


@pytest.mark.parametrize("negative_weight", [1.0, 0.2])
@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_the_sparse_form_of_the_squared_loss_is_the_dense_one(negative_weight, scale):
    rng, table = _targets()
    labels = LabelMatrix._of_targets(sp.csr_array(scale * table), None, None)
    weights = rng.random(9)
    quadratic = RowsLoss(labels, weights, "squared_error", negative_weight).entries(Workers(1))
    signs = labels.to_soft_signs()
    every = EntryTable(sp.csr_array(signs), True, weights, np.ones(5), negative_weight)
    dense = DenseEntries(GradedEntryLoss(SquaredEntryLoss()), every, Workers(1))
    for one, other in ((quadratic, dense), (quadratic.transposed, dense.transposed)):
        image, fixed = rng.standard_normal((one.shape[0], 2)), rng.standard_normal((one.shape[1], 2))
        points = one.at(image, fixed), other.at(image, fixed)
        for name in ("values", "gradients", "weights"):
            np.testing.assert_allclose(*(getattr(point, name) for point in points), atol=1e-7)
        np.testing.assert_allclose(*(point.curve(image) for point in points), atol=1e-7)
        operators = one.gradient_operator(image, fixed), other.gradient_operator(image, fixed)
        right = rng.standard_normal((one.shape[1], 3))
        np.testing.assert_allclose(*(operator.matmul(right) for operator in operators), atol=1e-7)
        np.testing.assert_allclose(*(operator.conjugate(0.7) for operator in operators), rtol=1e-7)


@pytest.mark.parametrize("has_missing", [False, True])
def test_listed_signs_are_graded(has_missing):
    rng, table = _targets(1)
    if has_missing:
        table[rng.random(table.shape) < 0.3] = np.nan
    labels = LabelMatrix.from_probabilities(table)
    listed = listed_signs(labels).toarray()
    expected = labels.to_soft_signs()
    if not has_missing:
        expected = np.where(table == 0, 0, expected)  # which are -1 where not listed
    np.testing.assert_allclose(listed, expected, atol=1e-12)


@pytest.mark.parametrize("entries", [None, "sparse", "dense"])
def test_doubts_of_hinges_are_weights(entries):
    rng, table = _targets(2)
    labels = LabelMatrix.from_probabilities(table)
    ones, own = np.ones((1, 5)), rng.integers(0, 3, table.shape).astype(float)
    given = {None: None, "sparse": sp.csr_array(own - 1), "dense": own}[entries]
    factors = None if entries is None else EntryWeights(ones, ones, given)
    kept, _, weighed = read_flips(labels, SquaredHingeEntryLoss(), factors)
    expected = np.abs(2 * table - 1) * (1.0 if entries is None else own)
    assert kept.flip_probabilities is None
    np.testing.assert_allclose(weighed.of_table(table > 0.5), expected, atol=1e-12)
