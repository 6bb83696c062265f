"""One penalised linear model a label, each from the rows where the label was observed.

For label l, with Omega_l the rows where it was observed,

    minimise  sum over i in Omega_l of w_i loss(y_il, z_l . x_i)  +  penalty/2 ||z_l||^2,

which is problem (2) of Yu et al. (2014) with a squared Frobenius norm and no bound on the rank.  The
squared loss is 1/2 (y - s)^2 with targets 0 and 1, the logistic loss log(1 + exp(-y s)) and the squared
hinge 1/2 max(0, 1 - y s)^2 with targets -1 and 1.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from labelweave.array_types import Array, PerRow
from labelweave.arrays import panels
from labelweave.baselines.centered_matrix import CenteredMatrix
from labelweave.baselines.ridge import make_ridge
from labelweave.labels import LabelMatrix

__all__ = ["LinearFits", "LinearProblem", "fit_liblinear", "fit_squared"]


_LABELS_AT_ONCE = 256


@dataclass(frozen=True)
class LinearProblem:
    """What is to be minimised, but for the loss.

    weights: the weights of the rows, positive.
    Shapes: data (n, d), labels (n, L).
    """

    data: Any
    labels: LabelMatrix
    weights: PerRow
    penalty: float


@dataclass(frozen=True)
class LinearFits:
    """The models.

    weights (L, d): z, a row a label.
    n_iter: the most iterations that a label took.
    converged: whether all labels that were fitted reached the tolerance.
    labels_fitted: how many labels were fitted; fewer than all after an interrupt.
    """

    weights: Array
    n_iter: int
    converged: bool
    labels_fitted: int


def fit_squared(problem: LinearProblem) -> LinearFits:
    """Minimise squared losses; labels that were observed in the same rows share one factorisation.

    Returns the models; after an interrupt those that were fitted.
    Raises KeyboardInterrupt if no label was fitted before an interrupt.
    """
    n_labels = problem.labels.n_labels
    weights, is_fitted = np.zeros((n_labels, problem.data.shape[1])), np.zeros(n_labels, bool)
    positives, converged = sp.csc_array(problem.labels.positives), True
    try:
        for rows, members in _groups(problem.labels):
            roots = np.sqrt(problem.weights[rows])
            inputs = CenteredMatrix(problem.data[rows], problem.weights[rows], center=False)
            ridge = make_ridge(inputs, problem.penalty)
            for part in panels(len(members), _LABELS_AT_ONCE):
                targets = roots[:, None] * positives[:, members[part]].toarray()[rows]
                weights[members[part]] = ridge.solve(targets).T
                is_fitted[members[part]] = True
            converged &= ridge.converged
        is_fitted[:] = True  # those without observed rows too
    except KeyboardInterrupt:
        _require_any(is_fitted)
        weights[~is_fitted] = 0
    return LinearFits(weights, 1, converged, int(is_fitted.sum()))


def _require_any(is_fitted: Array) -> None:
    if not is_fitted.any():
        raise KeyboardInterrupt


def _groups(labels: LabelMatrix) -> Iterator[tuple[Any, Array]]:
    """Give the sets of rows, and the labels that were observed in them and nowhere else."""
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
    """Minimise logistic or squared hinge losses with LIBLINEAR's trust-region Newton method.

    tol: LIBLINEAR's tolerance of the gradient.
    max_iter: the largest number of Newton steps.
    Returns the models; after an interrupt those that were fitted.
    Raises KeyboardInterrupt if no label was fitted before an interrupt.
    """
    model, n_labels = _model(loss, problem.penalty, tol, max_iter), problem.labels.n_labels
    weights, steps = np.zeros((n_labels, problem.data.shape[1])), np.full(n_labels, -1)

    def one(label: int, rows: Any, is_positive: Array) -> None:
        weights[label], steps[label] = _fit_label(model, problem, rows, is_positive)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # one for all labels comes at the end
            Parallel(n_jobs, require="sharedmem")(
                delayed(one)(label, *entries) for label, entries in enumerate(_entries(problem.labels))
            )
    except KeyboardInterrupt:
        _require_any(steps >= 0)
    is_fitted = steps >= 0  # threads that are still at work may write to the arrays, but not to these copies
    n_iter = int(steps[is_fitted].max())
    return LinearFits(weights * is_fitted[:, None], n_iter, n_iter < max_iter, int(is_fitted.sum()))


def _model(loss: str, penalty: float, tol: float, max_iter: int) -> Callable[[], Any]:
    if loss == "logistic":
        return lambda: LogisticRegression(
            C=1.0 / penalty, solver="liblinear", fit_intercept=False, tol=tol, max_iter=max_iter
        )
    # its loss has no factor 1/2
    return lambda: LinearSVC(
        C=0.5 / penalty, loss="squared_hinge", dual=False, fit_intercept=False, tol=tol, max_iter=max_iter
    )


def _entries(labels: LabelMatrix) -> Iterator[tuple[Any, Array]]:
    """Give the rows where each label was observed, and whether it is positive there."""
    positives = sp.csc_array(labels.positives)
    observed = None if labels.observed is None else sp.csc_array(labels.observed)
    for label in range(labels.n_labels):
        is_positive = np.zeros(len(labels), bool)
        is_positive[_rows_of(positives, label)] = True
        rows = slice(None) if observed is None else _rows_of(observed, label)
        yield rows, is_positive[rows]


def _fit_label(
    model: Callable[[], Any], problem: LinearProblem, rows: Any, is_positive: Array
) -> tuple[Array, int]:
    data, weights = problem.data[rows], problem.weights[rows]
    if len(is_positive) == 0:
        return np.zeros(data.shape[1]), 0
    if is_positive.all() or not is_positive.any():  # scikit-learn wants both; a row of 0 adds a constant
        blank = np.zeros((1, data.shape[1]))
        data = (
            sp.vstack([data, sp.csr_array(blank)], format="csr") if sp.issparse(data) else np.r_[data, blank]
        )
        is_positive, weights = np.append(is_positive, not is_positive[0]), np.append(weights, 1.0)
    fitted = model().fit(data, is_positive, sample_weight=weights)
    return fitted.coef_[0], int(np.max(fitted.n_iter_))
