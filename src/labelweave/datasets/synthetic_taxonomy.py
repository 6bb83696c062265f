"""A synthetic problem whose classes hang in a taxonomy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.datasets.csr_parts import csr_from_counts
from labelweave.datasets.labeled_data import LabeledData
from labelweave.labels import LabelMatrix

__all__ = ["make_taxonomy"]


def make_taxonomy(
    n_rows: int,
    n_features: int,
    *,
    depth: int = 3,
    branching: int = 3,
    decay: float = 0.7,
    noise: float = 1.0,
    random_state: int | None = 0,
) -> LabeledData:
    """Make rows that each belong to one leaf of a regular tree.

    The means of the classes diffuse down the tree: a node's mean is its
    parent's plus a Gaussian step, and steps shrink from level to level.

    Parameters
    ----------
    n_rows : int
        Rows ``n``.
    n_features : int
        Features ``d``.
    depth : int, default=3
        Levels below the root.
    branching : int, default=3
        Children of each inner node.
    decay : float, default=0.7
        Steps at level ``k`` below the root have standard deviation ``decay ** (k - 1)``.
    noise : float, default=1.0
        Standard deviation of a row's features around the mean of its leaf.
    random_state : int or None, default=0
        The seed.

    Returns
    -------
    LabeledData
        Dense X; the labels are all nodes below the root, named by their paths such as ``1/2/1``, positive on
        the path to the row's leaf; ``parents`` holds the tree.

    Raises
    ------
    ValueError
        If a size is too small.
    """
    if min(n_rows, n_features, depth) < 1 or branching < 2:
        raise ValueError(
            f"n_rows={n_rows}, n_features={n_features}, depth={depth}, branching={branching}; "
            "the first three are at least 1, branching at least 2."
        )
    rng = np.random.default_rng(random_state)
    means = np.zeros((1, n_features))
    for level in range(depth):
        means = np.repeat(means, branching, axis=0)
        means += rng.normal(scale=decay**level, size=means.shape)
    leaf = rng.integers(len(means), size=n_rows)
    X = means[leaf] + rng.normal(scale=noise, size=(n_rows, n_features))
    names = _paths(depth, branching)
    parents = tuple((name.rpartition("/")[0], name) for name in names if "/" in name)
    return LabeledData(X, LabelMatrix(_path_nodes(leaf, depth, branching), None, names), parents=parents)


def _paths(depth: int, branching: int) -> list[str]:
    """Name the nodes level by level."""
    names, level = list[str](), [""]
    for _ in range(depth):
        level = [f"{above}/{child + 1}".lstrip("/") for above in level for child in range(branching)]
        names.extend(level)
    return names


def _path_nodes(leaf: npt.NDArray[np.int64], depth: int, branching: int) -> sp.csr_array:
    """Mark the nodes above each leaf, and the leaf."""
    sizes = branching ** np.arange(1, depth + 1)
    offsets = np.cumsum(sizes) - sizes
    columns = offsets + leaf[:, None] // (sizes[-1] // sizes)
    ones = np.ones(columns.size, np.int8)
    return csr_from_counts(ones, columns.ravel(), np.full(len(leaf), depth), int(sizes.sum()))
