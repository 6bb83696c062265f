"""Arrays that start at a cache line."""

import numpy as np
import pytest

from labelweave.arrays import aligned_empty


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(0,), (1,), (3, 0, 16), (7, 3), (1000, 16)])
def test_an_aligned_array_is_an_array_that_starts_at_a_cache_line(shape, dtype):
    for _ in range(5):
        made = aligned_empty(shape, dtype)
        assert made.shape == shape
        assert made.dtype == dtype
        assert made.ctypes.data % 64 == 0 or made.size == 0
        assert made.flags.c_contiguous
        assert made.flags.writeable
