"""Scores that rows would have had if they had been left out, from one eigendecomposition.

Kernel ridge regression with an intercept on n rows: with the centred matrix H K H = U diag(e) U^T and the
penalty p, the residual of row i without row i is r_i / (1 - h_ii), where r = (I - S) (y - mean) and
S = U diag(e / (e + p)) U^T, h_ii = S_ii + 1/n.
"""

from __future__ import annotations

import numpy as np

from labelweave.array_types import Array

_PENALTIES = np.logspace(-5, 1, 13)  # times the largest eigenvalue


def left_out_loss(gram: Array, targets: Array) -> float:
    """Compute the least squared loss of left-out rows over a grid of penalties, as a share of the variance.

    gram (n, n): the kernel matrix.
    targets (n, L): numbers; NaN is filled with the column's mean and adds no loss.
    """
    rows = len(gram)
    known = ~np.isnan(targets)
    means = np.where(known, targets, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    centred = np.where(known, targets - means, 0.0)
    kernel = gram - gram.mean(axis=0)
    kernel -= kernel.mean(axis=1)[:, None]
    eigenvalues, vectors = np.linalg.eigh(kernel)
    eigenvalues = np.maximum(eigenvalues, 0.0)
    coefficients, variance = vectors.T @ centred, np.square(centred).sum()
    largest, losses = eigenvalues[-1], []
    for penalty in _PENALTIES * largest if largest > 0 else [1.0]:
        shrinkage = eigenvalues / (eigenvalues + penalty)
        leverage = np.square(vectors) @ shrinkage + 1.0 / rows
        residuals = centred - vectors @ (shrinkage[:, None] * coefficients)
        left_out = residuals / (1.0 - np.minimum(leverage, 1.0 - 1e-6))[:, None]
        losses.append(np.square(np.where(known, left_out, 0.0)).sum())
    return float(min(losses) / variance) if variance > 0 else 1.0
