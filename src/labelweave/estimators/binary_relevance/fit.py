"""The optimum of each label's problem: by one factorization, or by LIBLINEAR's Newton method.

The ridge regression of many targets on the same rows is ``min ||T - X B||^2 + penalty ||B||^2``.  One
factorization suffices for all targets; where it does not fit into memory, LSMR solves one target at a time.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from scipy import linalg
from scipy.sparse.linalg import aslinearoperator, lsmr
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from labelweave.estimators.entry_weights import SignFactors
from labelweave.features.kernels.distances import narrow_csr
from labelweave.foundation.array_types import Array, PerRow, RowsByLabels
from labelweave.foundation.arrays import panels
from labelweave.foundation.config import note_interrupt
from labelweave.labels import LabelMatrix

_LABELS_AT_ONCE = 256
_LARGEST_GRAM = 8000  # rows of a matrix that is factorized, 512 MB
_LARGEST_TABLE = 50_000_000  # entries of a matrix that is decomposed, 400 MB
_LEAST_SHARE = float(np.sqrt(np.finfo(np.float64).eps))  # so that half of the digits survive a solve
_TOLERANCE = 1e-10
_ITERATIONS_A_DIMENSION = 10.0


class LinearProblem(NamedTuple):
    """The objective, except for the loss; only rows of positive weight.

    by_sign: factors of the losses of positive and of negative entries, if any.
    entries (n, L): factors of the entries' losses, if any.
    """

    data: Any
    labels: LabelMatrix
    weights: PerRow
    penalty: float
    by_sign: SignFactors | None = None
    entries: RowsByLabels | None = None

    def weights_of(self, label: int, rows: Any, is_positive: Array) -> PerRow:
        weights = self.weights[rows]
        if self.entries is not None:
            weights = weights * self.entries[rows, label]
        if self.by_sign is None:
            return weights
        positive, negative = self.by_sign
        return weights * np.where(is_positive, positive[label], negative[label])


class LinearFits(NamedTuple):
    """The models, (L, d); after an interrupt only those of fitted labels are valid."""

    weights: Array
    n_iter: int
    converged: bool
    labels_fitted: int


def fit_squared(problem: LinearProblem) -> LinearFits:
    """Minimize squared losses; labels that are observed in the same rows share one factorization."""
    n_labels = problem.labels.n_labels
    weights, is_fitted = np.zeros((n_labels, problem.data.shape[1])), np.zeros(n_labels, bool)
    positives, converged = sp.csc_array(problem.labels.positives), True
    expected = sp.csc_array(problem.labels.expected_positives)
    try:
        for rows, members in _groups(problem):
            is_positive = positives[:, members[:1]].toarray()[rows, 0] > 0
            row_weights = problem.weights_of(members[0], rows, is_positive)
            roots = np.sqrt(row_weights)
            ridge = make_ridge(_scaled_rows(problem.data[rows], roots), problem.penalty)
            for part in panels(len(members), _LABELS_AT_ONCE):
                targets = roots[:, None] * expected[:, members[part]].toarray()[rows]
                weights[members[part]] = ridge.solve(targets).T
                is_fitted[members[part]] = True
            converged &= ridge.converged
        is_fitted[:] = True  # also those without observed rows
    except KeyboardInterrupt as interrupt:
        note_interrupt(interrupt)
        if not is_fitted.any():
            raise
        weights[~is_fitted] = 0
    return LinearFits(weights, 1, converged, int(is_fitted.sum()))


def _scaled_rows(data: Any, factors: PerRow) -> Any:
    return sp.diags_array(factors) @ data if sp.issparse(data) else factors[:, None] * data


def _groups(problem: LinearProblem) -> Iterator[tuple[Any, Array]]:
    """Yield sets of rows, and the labels observed in exactly these rows, of equal weights."""
    labels = problem.labels
    if problem.by_sign is not None or problem.entries is not None:
        for label, (rows, is_positive) in enumerate(_entries(labels)):
            if len(is_positive):
                yield rows, np.array([label])
        return
    if labels.observed is None:
        yield slice(None), np.arange(labels.n_labels)
        return
    observed = sp.csc_array(labels.observed)
    observed.sort_indices()
    groups: dict[bytes, list[int]] = {}
    for label in range(labels.n_labels):
        groups.setdefault(_rows_of(observed, label).tobytes(), []).append(label)
    for members in groups.values():
        rows = _rows_of(observed, members[0])
        if len(rows):
            yield rows, np.asarray(members)


def _rows_of(columns: sp.csc_array, label: int) -> Array:
    return np.asarray(columns.indices[columns.indptr[label] : columns.indptr[label + 1]])


def fit_liblinear(
    problem: LinearProblem, loss: str, tol: float, max_iter: int, n_jobs: int | None
) -> LinearFits:
    """Minimize logistic or squared hinge losses with LIBLINEAR's trust-region Newton method."""
    model, n_labels = _model(loss, problem.penalty, tol, max_iter), problem.labels.n_labels
    weights, steps = np.zeros((n_labels, problem.data.shape[1])), np.full(n_labels, -1)
    data = narrow_csr(problem.data) if sp.issparse(problem.data) else problem.data
    flips = problem.labels.flip_probabilities
    flips = None if flips is None else sp.csc_array(flips)

    def one(label: int, rows: Any, is_positive: Array) -> None:
        entries = data[rows], problem.weights_of(label, rows, is_positive), is_positive
        if flips is not None:
            entries = _with_less_likely(*entries, flips[:, [label]].toarray()[rows, 0])
        weights[label], steps[label] = _fit_label(model, *entries)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # one for all labels follows at the end
            Parallel(n_jobs, require="sharedmem")(
                delayed(one)(label, *entries) for label, entries in enumerate(_entries(problem.labels))
            )
    except KeyboardInterrupt as interrupt:
        note_interrupt(interrupt)
        if not (steps >= 0).any():
            raise
    is_fitted = steps >= 0  # running threads may still write to the arrays, but not to these copies
    n_iter = int(steps[is_fitted].max())
    return LinearFits(weights * is_fitted[:, None], n_iter, n_iter < max_iter, int(is_fitted.sum()))


def _model(loss: str, penalty: float, tol: float, max_iter: int) -> Any:
    shared = {"fit_intercept": False, "tol": tol, "max_iter": max_iter}
    if loss == "log_loss":
        return LogisticRegression(C=1.0 / penalty, solver="liblinear", **shared)
    return LinearSVC(C=0.5 / penalty, loss="squared_hinge", dual=False, **shared)  # no factor 1/2 in its loss


def _entries(labels: LabelMatrix) -> Iterator[tuple[Any, Array]]:
    positives = sp.csc_array(labels.positives)
    observed = None if labels.observed is None else sp.csc_array(labels.observed)
    for label in range(labels.n_labels):
        is_positive = np.zeros(len(labels), bool)
        is_positive[_rows_of(positives, label)] = True
        rows = slice(None) if observed is None else _rows_of(observed, label)
        yield rows, is_positive[rows]


def _with_less_likely(
    data: Any, weights: PerRow, is_positive: Array, flips: PerRow
) -> tuple[Any, PerRow, Array]:
    """Add the uncertain entries with their other value, so that both losses sum to the expected one."""
    other = np.flatnonzero(flips)
    more = data[other]
    data = sp.vstack([data, more], format="csr") if sp.issparse(data) else np.vstack([data, more])
    both = np.concatenate([weights * (1.0 - flips), (weights * flips)[other]])
    return data, both, np.concatenate([is_positive, ~is_positive[other]])


def _fit_label(model: Any, data: Any, weights: PerRow, is_positive: Array) -> tuple[Array, int]:
    there = weights > 0  # LIBLINEAR drops the others, and treats a single remaining class as positive
    if not there.all():
        data, weights, is_positive = data[there], weights[there], is_positive[there]
    if len(is_positive) == 0:
        return np.zeros(data.shape[1]), 0
    if is_positive.all() or not is_positive.any():  # scikit-learn requires both; a row of 0 adds a constant
        blank = np.zeros((1, data.shape[1]))
        is_sparse = sp.issparse(data)
        data = sp.vstack([data, sp.csr_array(blank)], format="csr") if is_sparse else np.r_[data, blank]
        is_positive, weights = np.append(is_positive, not is_positive[0]), np.append(weights, 1.0)
    fitted = clone(model).fit(data, is_positive, sample_weight=weights)
    return fitted.coef_[0], int(np.max(fitted.n_iter_))


class Ridge(Protocol):
    """A ridge regression without its targets."""

    converged: bool
    """Whether all solutions were exact up to rounding."""

    def solve(self, targets: Array) -> Array:
        """Regress targets (n, k) on X; if there are several solutions, return the one of least norm."""


def make_ridge(rows: Any, penalty: float) -> Ridge:
    n, d = rows.shape
    if penalty > 0 and min(n, d) <= _LARGEST_GRAM:
        try:
            return CholeskyRidge(rows, penalty)
        except linalg.LinAlgError:  # the penalty is lost in the rounding of X^T X
            pass
    if n * d <= _LARGEST_TABLE and min(n, d) <= _LARGEST_GRAM:
        return SpectralRidge(rows, penalty)
    return IterativeRidge(rows, penalty)


class CholeskyRidge:
    """Solve by one Cholesky factor of ``X^T X`` or ``X X^T`` plus the penalty, whichever is smaller.

    Raises scipy.linalg.LinAlgError if the penalty is too small to make the sum safely invertible.
    """

    converged = True

    def __init__(self, rows: Any, penalty: float) -> None:
        self.rows = rows
        self.by_rows = rows.shape[0] < rows.shape[1]
        products = rows @ rows.T if self.by_rows else rows.T @ rows
        gram = products.toarray() if sp.issparse(products) else products
        if not penalty > float(np.trace(gram)) * _LEAST_SHARE:
            raise linalg.LinAlgError
        gram[np.diag_indices_from(gram)] += penalty
        self.factor = linalg.cho_factor(gram, lower=True, overwrite_a=True)

    def solve(self, targets: Array) -> Array:
        if self.by_rows:
            return np.asarray(self.rows.T @ linalg.cho_solve(self.factor, targets))
        return np.asarray(linalg.cho_solve(self.factor, self.rows.T @ targets))


class SpectralRidge:
    """Solve by the singular value decomposition of X, which handles any penalty and any X."""

    converged = True

    def __init__(self, rows: Any, penalty: float) -> None:
        table = rows.toarray() if sp.issparse(rows) else rows
        self.left, values, self.right = linalg.svd(table, full_matrices=False)
        smallest = values.max(initial=0.0) * max(rows.shape) * np.finfo(float).eps
        kept = values > smallest
        self.gains = np.zeros_like(values)
        self.gains[kept] = values[kept] / (values[kept] ** 2 + penalty)

    def solve(self, targets: Array) -> Array:
        return np.asarray(self.right.T @ (self.gains[:, None] * (self.left.T @ targets)))


class IterativeRidge:
    """Solve by LSMR, one target after another, with products with X only."""

    def __init__(self, rows: Any, penalty: float) -> None:
        self.converged = True
        self.operator = aslinearoperator(rows)
        self.damp = float(np.sqrt(penalty))
        self.max_iter = max(1, int(_ITERATIONS_A_DIMENSION * min(rows.shape)))

    def solve(self, targets: Array) -> Array:
        limits = {"atol": _TOLERANCE, "btol": _TOLERANCE, "conlim": 0, "maxiter": self.max_iter}
        found = [lsmr(self.operator, target, self.damp, **limits) for target in targets.T]
        self.converged &= all(reason != 7 for _, reason, *_ in found)
        return np.stack([solution for solution, *_ in found], axis=1)
