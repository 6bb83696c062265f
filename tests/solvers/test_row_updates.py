"""Updates of tables in place: one factor for all, a row or a column, for any number of threads."""

import numpy as np
import pytest

from labelweave.arrays import Workers
from labelweave.solvers.row_updates import add_multiple, multiply_and_add


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (1, 1), (1, 5), (7, 1)])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_tables_are_updated_in_place(dtype, shape, n_threads, monkeypatch):
    monkeypatch.setattr("labelweave.solvers.row_updates._AT_ONCE", 10)
    random = np.random.default_rng(0)
    target, vector = (random.normal(size=(7, 5)).astype(dtype) for _ in range(2))
    rate = random.normal(size=shape)
    added, multiplied = target.copy(), target.copy()
    with Workers(n_threads).running() as workers:
        add_multiple(added, rate, vector, workers)
        multiply_and_add(multiplied, rate, vector, workers)
    np.testing.assert_allclose(added, target + rate * vector, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(multiplied, rate * target + vector, rtol=1e-4, atol=1e-5)


def test_tables_may_lie_in_memory_in_any_way_and_be_read_only():
    target, vector = np.zeros((4, 3), order="F"), np.ones((3, 4)).T
    vector.setflags(write=False)
    add_multiple(target, 2.0, vector, Workers())
    assert (target == 2).all()
