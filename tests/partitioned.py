"""Arrays cut into the chunks and partitions of Dask that tests fit to."""

import dask.array as da
import numpy as np

import dask

SIZES = (30, 40, 20)


def chunks(values, sizes=SIZES):
    return da.from_array(values, chunks=(sizes, *values.shape[1:]))


def partitions(values, sizes=SIZES):
    ends = np.cumsum(sizes)
    return [dask.delayed(values[end - size : end]) for end, size in zip(ends, sizes, strict=True)]
