"""Arrays that came in messages, at addresses that are no multiples of their numbers' size."""

import pickle

import numpy as np
import scipy.sparse as sp

from labelweave.dask.rows import Sized, aligned
from labelweave.features import FeatureMatrix


def _misaligned(array):
    moved = np.empty(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    moved[:] = array
    return moved


class Kept(Sized):
    def __init__(self, table):
        self.features = FeatureMatrix._unchecked(table)


def test_arrays_are_aligned_inside_of_what_workers_keep():
    table = np.arange(12.0).reshape(3, 4)
    moved = _misaligned(table)
    assert not moved.flags.aligned
    assert aligned(moved).flags.aligned
    assert aligned(table) is table
    kept = Kept(table)
    kept.__setstate__({"features": FeatureMatrix._unchecked(moved)})
    assert kept.features.data.flags.aligned
    np.testing.assert_array_equal(kept.features.data, table)


def test_sparse_parts_are_aligned():
    csr = sp.csr_array(np.eye(3))
    csr.data = _misaligned(csr.data)
    found = aligned(csr)
    assert found.data.flags.aligned
    np.testing.assert_array_equal(found.toarray(), np.eye(3))


def test_what_was_pickled_is_as_it_was():
    again = pickle.loads(pickle.dumps(Kept(np.eye(2))))
    np.testing.assert_array_equal(again.features.data, np.eye(2))
