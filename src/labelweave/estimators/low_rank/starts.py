"""Starts of the low-rank model's fits: singular vectors of the labels, or another fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.foundation.array_types import Array
from labelweave.labels import LabelMatrix

_SPARE = 10  # columns of a block of singular vectors beyond those that are requested
_POWERS = 2
_DEAD = 1e-3  # times the longest column: shorter ones are replaced


@dataclass(frozen=True)
class Start:
    """Factors of another fit for a warm start, the most important column first.

    features: the other factor, None to start it at 0; of features and the constant one, or of rows.
    Shapes: labels (q, k), features (m, k).
    """

    labels: Array
    features: Array | None = None

    def spread(self, rows: Array, n_rows: int) -> Start:
        """Return the start for more rows, where these are ``rows``; others get coefficients of 0."""
        if self.features is None:
            return self
        features = np.zeros((n_rows, self.features.shape[1]), self.features.dtype)
        features[rows] = self.features
        return Start(self.labels, features)

    def at_rank(self, rank: int) -> Start:
        """Keep leading columns, or add columns of zeros."""
        return Start(_wide(self.labels, rank), None if self.features is None else _wide(self.features, rank))


def _wide(factor: Array, rank: int) -> Array:
    return np.pad(factor[:, :rank], ((0, 0), (0, max(0, rank - factor.shape[1]))))


def continued(known: Array, first: Array, rank: int) -> Array:
    """Start from the label factor of another fit; missing columns or those near 0 come from ``first``."""
    start = np.array(first[:, :rank], np.float64)
    lengths = np.linalg.norm(known[:, :rank], axis=0)
    alive = np.flatnonzero(lengths > _DEAD * lengths.max(initial=0.0))
    start[:, alive] = known[:, alive]
    return start


def first_label_factor(
    labels: LabelMatrix, rank: int, init: str, seed: int, weights: Array | None = None
) -> npt.NDArray[np.float64]:
    """Return the initial label factor.

    init: leading right singular vectors of the positive entries, or normal random numbers.
    weights (n,): weights of the rows: a row of weight 2 counts like two rows.
    Returns (L, k): the factor, no column of it 0.
    """
    rng = np.random.default_rng(seed)
    random = rng.standard_normal((labels.n_labels, rank))
    if init == "random":
        return random
    positives = labels.expected_positives.astype(np.float64)
    if weights is not None:
        positives.data *= np.repeat(np.sqrt(weights), np.diff(positives.indptr))
    if min(positives.shape) <= max(500, 2 * rank):
        sizes, vectors = _small_svd(positives)
    else:
        sizes, vectors = _leading_svd(positives, rank, rng)
    found = min(rank, len(sizes))
    factor = np.zeros((labels.n_labels, rank))
    factor[:, :found] = vectors[:found].T * np.sqrt(sizes[:found])
    # a column of zeros would stay zero
    empty = np.linalg.norm(factor, axis=0) <= 1e-6 * max(1.0, float(sizes.max(initial=0.0)))
    factor[:, empty] = 1e-3 * random[:, empty]
    return factor


def _small_svd(positives: sp.csr_array) -> tuple[Array, Array]:
    if positives.shape[1] <= positives.shape[0]:
        sizes, vectors = _from_gram((positives.T @ positives).toarray())
        return sizes, vectors.T
    sizes, left = _from_gram((positives @ positives.T).toarray())
    there = sizes > 1e-7 * sizes.max(initial=0.0)
    right = positives.T @ (left * np.divide(1.0, sizes, out=np.zeros_like(sizes), where=there))
    return sizes * there, np.asarray(right).T


def _from_gram(gram: Array) -> tuple[Array, Array]:
    """Return singular values in descending order, and their vectors, from a Gram matrix."""
    squares, vectors = np.linalg.eigh(gram)
    order = np.argsort(-squares)
    return np.sqrt(np.maximum(squares[order], 0.0)), vectors[:, order]


def _leading_svd(positives: sp.csr_array, rank: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Approximate leading singular values and right vectors by block power iterations.

    A start need not be exact, and the products with a sparse matrix of ones cost little; the
    factorizations of tall arrays in a randomized decomposition would cost more than a round.
    """
    block = positives.T @ (positives @ rng.standard_normal((positives.shape[1], rank + _SPARE)))
    for _ in range(_POWERS):
        block = positives.T @ (positives @ _orthonormalized(block))
    block = _orthonormalized(block)
    through = positives @ block
    sizes, turned = _from_gram(through.T @ through)
    return sizes, (block @ turned).T


def _orthonormalized(block: Array) -> Array:
    """Orthonormalize columns by their Gram matrix; those that depend on others become 0."""
    values, vectors = np.linalg.eigh(block.T @ block)
    kept = values > 1e-12 * values.max(initial=0.0)
    return np.asarray(block @ (vectors * np.where(kept, 1.0 / np.sqrt(np.where(kept, values, 1.0)), 0.0)))
