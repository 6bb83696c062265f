"""The scale of distances in a data set, from which widths of RBF kernels are counted."""

from typing import Any

import numpy as np


def median_distance(X: Any) -> float:
    squares = (X * X).sum(axis=1)
    distances = squares[:, None] + squares - 2 * X @ X.T
    return float(np.median(distances[np.triu_indices(len(X), 1)]))
