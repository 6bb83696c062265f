"""What single forms of a kernel matrix promise; what all promise is in tests/contracts/test_grams.py."""

import numpy as np
import pytest

from labelweave.features import FeatureMatrix, Kernel, LinearKernel, RBFKernel
from labelweave.features.gram import FeatureGram, StoredGram, StreamedGram
from labelweave.features.gram.sources import KernelSource, PrecomputedSource
from labelweave.foundation.arrays import Workers

X = np.random.default_rng(0).normal(size=(300, 4))


class _Counting(Kernel):
    """A kernel that notes the sizes of the blocks asked for."""

    def __init__(self, sizes):
        self.sizes = sizes

    def _block(self, rows, columns):
        self.sizes.append((len(rows), len(columns), rows.data.dtype))
        return RBFKernel(0.3).block(rows, columns)

    def _diagonal(self, rows):
        return np.ones(len(rows))


def test_a_stored_matrix_is_computed_in_double_precision_and_rounded_once():
    features = FeatureMatrix(X.astype(np.float32))
    gram = StoredGram.from_source(KernelSource(RBFKernel(0.3), features), 1.0, np.float32, Workers())
    exact = RBFKernel(0.3).block(features.astype(np.float64), features.astype(np.float64)) + 1.0
    np.testing.assert_array_equal(gram.table, exact.astype(np.float32))
    np.testing.assert_array_equal(gram.table, gram.table.T)


def test_a_stored_matrix_computes_each_pair_of_panels_once(monkeypatch):
    monkeypatch.setattr("labelweave.features.gram.stored._BUILD_PANEL", 100)
    sizes = []
    StoredGram.from_source(KernelSource(_Counting(sizes), FeatureMatrix(X)), 0.0, np.float64, Workers())
    assert len(sizes) == 6


@pytest.mark.parametrize("panel_bytes", [1e5, 4e5, 64e6])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_streamed_matrix_keeps_its_blocks_within_its_budget(panel_bytes, threads):
    sizes = []
    source = KernelSource(_Counting(sizes), FeatureMatrix(X))
    with Workers(threads).running() as workers:
        gram = StreamedGram(source, 1.0, np.float64, workers, panel_bytes)
        gram.product(np.ones((300, 2)))
        gram.columns(np.arange(20))
    assert max(rows * columns for rows, columns, _ in sizes) * 2 * 8 * threads <= max(
        panel_bytes, 2 * 8 * threads * 64**2
    )


def test_a_streamed_product_is_computed_in_the_type_of_the_vectors():
    sizes = []
    gram = StreamedGram(KernelSource(_Counting(sizes), FeatureMatrix(X)), 1.0, np.float32, Workers())
    gram.product(np.ones((300, 1)))
    assert {kind for *_, kind in sizes} == {np.dtype(np.float64)}
    sizes.clear()
    gram.product(np.ones((300, 1), np.float32))
    gram.columns(np.array([0]))
    assert {kind for *_, kind in sizes} == {np.dtype(np.float32)}


def test_blocks_of_a_given_matrix_are_copies():
    matrix = X @ X.T
    before = matrix.copy()
    source = PrecomputedSource(matrix)
    for which in (slice(0, 5), np.arange(5)):
        source.block(which, which, np.float64)[:] = 0
    np.testing.assert_array_equal(matrix, before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_entries_between_some_rows_are_a_copy_in_double_precision(dtype):
    gram = StoredGram((X @ X.T).astype(dtype), Workers())
    rows = np.array([5, 2, 5])
    entries = gram.block(rows)
    assert entries.dtype == np.float64
    np.testing.assert_array_equal(entries, gram.table[np.ix_(rows, rows)])
    entries[:] = 0
    assert gram.table[5, 5] > 0


def test_features_and_their_kernel_give_the_same_matrix():
    features = FeatureMatrix(X)
    stored = StoredGram.from_source(KernelSource(LinearKernel(), features), 1.0, np.float64, Workers())
    narrow = FeatureGram(features, 1.0, np.float64, Workers())
    vectors = np.random.default_rng(1).normal(size=(300, 3))
    np.testing.assert_allclose(narrow.product(vectors), stored.product(vectors), atol=1e-10)
    np.testing.assert_array_equal(X, features.data)
