"""Leave-one-out and out-of-fold scores of kernel ridge regression, from one eigendecomposition.

Kernel ridge regression of many targets with an unpenalized intercept,

    minimize over f, b   sum_i w_i (y_i - f(x_i) - b)^2 + penalty ||f||^2,

has fitted values that are linear in the targets: with t = W^1/2 y, G = W^1/2 K W^1/2, the unit vector
u = W^1/2 1 / |W^1/2 1| and P = I - u u^T they are H t, where

    H = u u^T + U diag(e / (e + penalty)) U^T,    P G P = U diag(e) U^T,

so one eigendecomposition suffices for all penalties and targets.  With A = I - H, rows B that are held out
together have the residuals A_BB^-1 (A t)_B of the fit to the others (Allen, "The relationship between
variable selection and data augmentation", 1974; Cook, "Detection of influential observation in linear
regression", 1977, for blocks).

A missing target is one more held-out row.  The leave-one-out residuals of the other rows are then
those of the Schur complement S = A_OO - A_OM A_MM^-1 A_MO, where O are the rows observed and M those missing:
r_i / S_ii with r = (A t)_O - A_OM A_MM^-1 (A t)_M, whatever value t_M has.  Targets that are missing in the
same rows share S.

A matrix of another library than NumPy's is decomposed and multiplied where it is; targets, scores and
coefficients are NumPy's.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import scipy.linalg as sl

from labelweave.foundation.array_types import Array, Floats, PerRow, RowsByLabels, RowsByRows
from labelweave.foundation.arrays.linear_algebra import (
    Workers,
    add_to_diagonal,
    as_type,
    columns_of,
    copied,
    eigh,
    is_numpy,
    like,
    to_numpy,
)
from labelweave.foundation.arrays.tables import CholeskyFactor

_PENALTIES = np.logspace(-5, 1, 13)  # times the largest eigenvalue
_NEGLIGIBLE = 1e-12  # of the largest eigenvalue
_ROUNDS = 200
_ENOUGH = 1e-18  # of the squared length of targets: tolerance of the residuals of imputed entries
_LEAST = 1e-6  # diagonal entry of I - H, by which residuals are divided


class OutOfFoldRidge:
    """Kernel ridge regressions of many targets on the same rows, for every penalty.

    weights (n,): of the rows' squared errors, above 0; None for 1.
    """

    def __init__(self, gram: RowsByRows, weights: PerRow | None = None) -> None:
        self._weigh(gram.shape[0], weights)
        gram = as_type(gram, np.float64)
        roots = like(self.roots, gram)
        self._scaled = roots[:, None] * gram * roots[None, :]

    @cached_property
    def _square(self) -> Array:
        """P G P, or a matrix with the same positive eigenvalues."""
        unit = like(self.unit, self._scaled)
        projected: Array = self._scaled - unit[:, None] * (unit @ self._scaled)[None, :]
        projected -= (projected @ unit)[:, None] * unit[None, :]
        return projected

    @cached_property
    def _spectrum(self) -> tuple[Floats, Array]:
        eigenvalues, vectors = _eigh(self._square)
        return np.maximum(eigenvalues, 0.0), vectors

    @property
    def eigenvalues(self) -> Floats:
        return self._spectrum[0]

    @property
    def vectors(self) -> Array:
        """The eigenvectors of the kernel matrix."""
        return self._spectrum[1]

    def _weigh(self, n: int, weights: PerRow | None) -> None:
        self.roots = np.ones(n) if weights is None else np.sqrt(weights)
        self.unit = self.roots / np.linalg.norm(self.roots)

    @property
    def penalties(self) -> Floats:
        """Penalties to choose from, from negligible ones to more than the largest eigenvalue."""
        largest = float(self.eigenvalues.max(initial=0.0))
        return _PENALTIES * largest if largest > 0 else np.ones(1)

    def scores(self, targets: RowsByLabels, penalty: float, folds: PerRow | None = None) -> RowsByLabels:
        """Score each row by the fit to the others.

        targets (n, L): numbers; NaN where missing, which is scored by the fit to all rows observed.
        folds (n,): numbers of parts that are held out together; None for leave-one-out.
        """
        found = np.empty_like(targets)
        known = ~np.isnan(targets)
        maker = None if folds is None and known.all() else self._residual_maker(penalty)
        for missing, labels in _patterns(known):
            if len(missing) == len(targets):  # nothing is observed: the fit to no row
                found[:, labels] = 0.0
                continue
            found[:, labels] = self._pattern(targets[:, labels], penalty, folds, missing, maker)
        return found

    def coefficients(self, targets: RowsByLabels, penalty: float) -> tuple[Floats, Floats]:
        """Fit all rows: scores are ``K(x, rows) @ coefficients + intercepts``, (n, L) and (L,)."""
        filled = self._completed(targets, penalty)
        weighted = self.roots[:, None] * filled
        centered = weighted - np.outer(self.unit, self.unit @ weighted)
        dual = self._solved(centered, penalty)
        dual[np.isnan(targets)] = 0.0  # they are 0 up to rounding
        intercepts = self.unit @ (weighted - product(self._scaled, dual)) / np.linalg.norm(self.roots)
        return self.roots[:, None] * dual, intercepts

    def _solved(self, right: Array, penalty: float) -> Array:
        """Solve with ``_square + penalty I``; a factorization takes an eighth of an eigendecomposition."""
        if "_spectrum" not in self.__dict__:
            return _solved(self._square, right, penalty)
        eigenvalues, vectors = self._spectrum
        return product(vectors, product(vectors.T, right) / (eigenvalues + penalty)[:, None])

    def _completed(self, targets: RowsByLabels, penalty: float) -> RowsByLabels:
        """Impute missing targets by the scores of the fit, which does not change the fit."""
        known = ~np.isnan(targets)
        if known.all():
            return targets
        found = np.where(known, targets, 0.0)
        maker = self._residual_maker(penalty)
        for missing, labels in _patterns(known):
            if 0 < len(missing) < len(targets):  # with no observed row, the fit is 0
                residuals = self._residuals(self.roots[:, None] * found[:, labels], penalty)[missing]
                solved = _solved(maker[np.ix_(missing, missing)], residuals)
                found[np.ix_(missing, labels)] = -solved / self.roots[missing, None]
        return found

    def _pattern(
        self, targets: RowsByLabels, penalty: float, folds: PerRow | None, missing: Array, maker: Array | None
    ) -> RowsByLabels:
        """Score rows for targets that are missing in the same rows."""
        filled = targets.copy()
        filled[missing] = 0.0
        weighted = self.roots[:, None] * filled
        residuals = self._residuals(weighted, penalty)
        if maker is None:
            own = 1.0 - np.square(self.unit) - product(self.vectors**2, self._shares(penalty))
            out_of_fold = residuals / np.maximum(own, _LEAST)[:, None]
        elif folds is None:
            out_of_fold = _one_by_one(maker, residuals, missing)
        else:
            out_of_fold = _together(maker, weighted, residuals, missing, folds)
        return (weighted - out_of_fold) / self.roots[:, None]

    def _shares(self, penalty: float) -> Floats:
        return self.eigenvalues / (self.eigenvalues + penalty)

    def _residuals(self, weighted: Array, penalty: float) -> Array:
        residuals: Array = weighted - np.outer(self.unit, self.unit @ weighted)
        residuals -= product(self.vectors, self._shares(penalty)[:, None] * product(self.vectors.T, weighted))
        return residuals

    def _residual_maker(self, penalty: float) -> RowsByRows:
        shrunk = self.vectors * like(np.sqrt(self._shares(penalty)), self.vectors)[None, :]
        maker: RowsByRows = to_numpy(-(shrunk @ shrunk.T))
        maker -= np.outer(self.unit, self.unit)
        maker[np.diag_indices_from(maker)] += 1.0
        return maker


class OutOfFoldFactorRidge(OutOfFoldRidge):
    """The same with a kernel matrix ``F F^T`` of low rank: F (n, r), or features of a linear fit."""

    _last: tuple[Array, Array, Array] | None = None

    def __init__(self, factor: Array, weights: PerRow | None = None) -> None:
        self._weigh(factor.shape[0], weights)
        factor = as_type(factor, np.float64)
        scaled, unit = like(self.roots, factor)[:, None] * factor, like(self.unit, factor)
        center = unit @ scaled
        self.factor, self.center = factor, to_numpy(center)
        self._projected = scaled - unit[:, None] * center[None, :]

    @cached_property
    def _square(self) -> Array:
        return self._projected.T @ self._projected

    def use_products(self, products: Array) -> None:
        """Take the weighted inner products of the factor's columns, (r, r), as computed elsewhere."""
        center = like(self.center, products)
        self._square = products - center[:, None] * center[None, :]

    @cached_property
    def _spectrum(self) -> tuple[Floats, Array]:
        squares, right = _eigh(self._square)
        kept = squares > _NEGLIGIBLE * max(squares.max(initial=0.0), 1e-300)
        return squares[kept], columns_of(right, kept)

    @cached_property
    def vectors(self) -> Array:
        eigenvalues, right = self._spectrum
        return self._projected @ (right / like(np.sqrt(eigenvalues), right)[None, :])

    def coefficients(self, targets: RowsByLabels, penalty: float) -> tuple[Floats, Floats]:
        """Fit all rows: scores are ``f @ coefficients + intercepts`` for the row f of F, (r, L) and (L,)."""
        moments, level = self._moments(self._completed(targets, penalty))
        found = self._solved(moments, penalty)
        return found, (level - self.center @ found) / np.linalg.norm(self.roots)

    def _completed(self, targets: RowsByLabels, penalty: float) -> RowsByLabels:
        """Impute by conjugate gradients, which need no matrix of rows by rows."""
        known = ~np.isnan(targets)
        if known.all():
            return targets
        # imputed entries have no residuals: (A t)_M = 0
        weighted = self.roots[:, None] * np.where(known, targets, _means(targets, known))
        residual = np.where(known, 0.0, -self._residuals(weighted, penalty))
        step, square = residual.copy(), np.square(residual).sum(axis=0)
        enough = _ENOUGH * np.square(weighted).sum(axis=0)
        for _ in range(_ROUNDS):
            going = square > enough
            if not going.any():
                break
            bent = np.where(known, 0.0, self._residuals(step, penalty))
            curvature = (step * bent).sum(axis=0)
            length = np.divide(square, curvature, out=np.zeros_like(square), where=going & (curvature > 0))
            weighted += length * step
            residual -= length * bent
            last, square = square, np.square(residual).sum(axis=0)
            step = residual + np.divide(square, last, out=np.zeros_like(square), where=going) * step
        return np.where(known, targets, weighted / self.roots[:, None])

    def _moments(self, targets: RowsByLabels) -> tuple[Array, Array]:
        """Multiply targets by the factor, and by the unit vector; results of the last targets are cached."""
        if self._last is None or self._last[0] is not targets:
            weighted = self.roots[:, None] * targets
            moments = product(self._projected.T, weighted)
            self._last = targets, moments, self.unit @ weighted
        return self._last[1:]


def _one_by_one(maker: RowsByRows, residuals: Array, missing: Array) -> Array:
    """Return leave-one-out residuals, and those of missing rows without all missing rows."""
    observed = np.setdiff1d(np.arange(len(maker)), missing)
    out_of_fold = np.empty_like(residuals)
    own = maker.diagonal()[observed]
    rest = residuals[observed]
    if len(missing):
        out_of_fold[missing] = _solved(maker[np.ix_(missing, missing)], residuals[missing])
        across = maker[np.ix_(missing, observed)]
        own = own - np.einsum("ij,ij->j", across, _solved(maker[np.ix_(missing, missing)], across))
        rest = rest - across.T @ out_of_fold[missing]
    out_of_fold[observed] = rest / np.maximum(own, _LEAST)[:, None]
    return out_of_fold


def _together(maker: RowsByRows, weighted: Array, residuals: Array, missing: Array, folds: PerRow) -> Array:
    """Return the residuals of each fold's rows without all of them and without missing rows.

    The fit to no row is 0, and its residuals are the targets themselves.
    """
    out_of_fold, is_missing = np.empty_like(residuals), np.zeros(len(maker), bool)
    is_missing[missing] = True
    for fold in np.unique(folds):
        rows = np.flatnonzero((folds == fold) | is_missing)
        is_whole = len(rows) == len(maker)
        solved = weighted if is_whole else _solved(maker[np.ix_(rows, rows)], residuals[rows])
        own = folds[rows] == fold
        out_of_fold[rows[own]] = solved[own]
    return out_of_fold


def product(left: Array, right: Array) -> Array:
    """Multiply, where the left factor is, by a NumPy array; return a NumPy array."""
    return to_numpy(left @ like(right, left))


def _eigh(matrix: Array) -> tuple[Floats, Array]:
    return sl.eigh(matrix, check_finite=False) if is_numpy(matrix) else eigh(matrix)


def _solved(matrix: Array, right: Array, added: float = _LEAST**2) -> Array:
    matrix = copied(matrix)
    add_to_diagonal(matrix, added)
    if not is_numpy(matrix):
        return to_numpy(CholeskyFactor(matrix, Workers()).solve(like(right, matrix)))
    return np.asarray(sl.solve(matrix, right, assume_a="pos", overwrite_a=True, check_finite=False))


def _patterns(known: Array) -> Iterator[tuple[Array, Array]]:
    """Yield rows in which targets are missing, with the targets that are missing in exactly these."""
    if known.all():
        yield np.empty(0, np.intp), np.arange(known.shape[1])
        return
    patterns, number = np.unique(known, axis=1, return_inverse=True)
    for pattern in range(patterns.shape[1]):
        yield np.flatnonzero(~patterns[:, pattern]), np.flatnonzero(number.ravel() == pattern)


def _means(targets: Array, known: Array) -> Array:
    return np.asarray(np.where(known, targets, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1))


def oof_loss(gram: Array, targets: Array, folds: PerRow | None = None) -> float:
    """Compute the least out-of-fold squared error over a grid of penalties, relative to label means.

    targets (n, L): numbers; NaN is replaced by the column's mean and adds no loss.
    folds (n,): numbers of parts that are held out together; None for leave-one-out.
    """
    known = ~np.isnan(targets)
    centered = np.where(known, targets - _means(targets, known), 0.0)
    variance, ridge = np.square(centered).sum(), OutOfFoldRidge(gram)
    if not variance > 0:
        return 1.0
    losses = [
        np.square(np.where(known, centered - ridge.scores(centered, p, folds), 0.0)).sum()
        for p in ridge.penalties
    ]
    return float(min(losses) / variance)
