"""Binary relevance: a penalised linear model a label, from the rows where the label was observed.

Yu et al. 2014 (LEML), section 5, compare with it; it is their problem (2) with a squared Frobenius norm and
no bound on the rank.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from labelweave.array_types import Array, PerRow
from labelweave.arrays import panels
from labelweave.baselines.baseline_classifier import BaselineClassifier, TrainingData
from labelweave.baselines.ridge import CenteredMatrix, make_ridge
from labelweave.estimators.class_weights import SignFactors
from labelweave.estimators.parameters import POSITIVE, SHARED, ClassWeight, keep_parameters
from labelweave.estimators.progress import FitProgress
from labelweave.estimators.scorers import LinearScorer
from labelweave.features.kernels.distances import narrow_csr
from labelweave.interrupts import note_interrupt
from labelweave.labels import LabelMatrix
from labelweave.model_files import storable
from labelweave.model_files.schema import Field, count
from labelweave.sklearn_compat import StrOptions

_LABELS_AT_ONCE = 256


@storable("BinaryRelevance")
class BinaryRelevance(BaselineClassifier):
    """One linear model a label, fitted to the rows where the label was observed.

    It minimises, over the weights Z, one column a label,

    ``sum over observed (i, l) of w_i loss(y_il, z_l . x_i) + regularization/2 ||Z||^2``.

    Labels do not influence each other.  A label that was observed with one value only gets the
    weights that this problem has; with a squared loss and no positive entry they are 0.

    Parameters
    ----------
    loss : {"squared", "logistic", "squared_hinge"}, default="squared"
        ``1/2 (y - s)^2`` with y 1 and 0; ``log(1 + exp(-y s))`` or ``1/2 max(0, 1 - y s)^2`` with y 1 and -1.
    regularization : float, default=1.0
        The penalty, above 0.
    fit_intercept : bool, default=True
        Whether to add a constant feature 1, whose weight is penalised like any.
    class_weight : {"balanced"}, dict, list of dict or None, default=None
        Weights of classes, by which those of rows are multiplied: a dict, or "balanced" for rows /
        (classes x rows of the class), with rows counted by their weights.  With many labels the losses of
        entries are multiplied: by "balanced" from the positives and negatives observed of each label, by a
        dict such as ``{0: 1, 1: 5}`` for all labels, or by a list of one a label.  The squared loss
        then takes a factorisation a label.
    tol : float, default=1e-4
        LIBLINEAR's tolerance of the gradient, for the logistic loss and the squared hinge.  The squared
        loss is solved by factorisation, and by LSMR for more than 8,000 rows and features.
    max_iter : int, default=1000
        The largest number of LIBLINEAR's Newton steps.
    n_jobs : int or None, default=None
        Threads over which the labels are spread with these two losses; the result does not depend on it.
    verbose : bool or int, default=0
        Whether to write to stderr how far a fit is: a line every two seconds, later more rarely, and one at
        the end; 2 for a line at every step.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (L, d), ndarray of shape (L,)
        The weights, one row a label, and the intercepts.
    threshold_ : float
        Where a label is predicted, 0.5 for the squared loss and 0 for the others;
        ``decision_function`` gives scores less this.
    classes_ : ndarray of shape (L,)
        The label names, label numbers, or classes.
    n_features_in_, feature_names_in_ : int, ndarray of shape (d,)
        Features seen in fit, and their names, when X was a frame.
    n_iter_ : int
        The most Newton steps that a label took; 1 for the squared loss.
    converged_ : bool
        Whether all labels reached the tolerance.
    status_ : {"converged", "iteration_limit", "interrupted"}
        Why the fit ended.
    labels_fitted_ : int
        Labels that were fitted before an interrupt (Ctrl-C), or all; the weights of the others are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.baselines import BinaryRelevance
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> Y = np.array([[0, 1], [0, 1], [1, np.nan], [1, 0]])
    >>> BinaryRelevance("logistic", regularization=0.1).fit(X, Y).predict([[0.2], [2.9]])
    array([[0, 1],
           [1, 0]])
    """

    _stored: ClassVar[dict[str, Field]] = {"labels_fitted_": count()}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SHARED,
        "loss": [StrOptions({"squared", "logistic", "squared_hinge"})],
        "regularization": [POSITIVE],
    }

    def __init__(
        self, loss: str = "squared", *, regularization: float = 1.0, fit_intercept: bool = True,
        class_weight: ClassWeight = None, tol: float = 1e-4, max_iter: int = 1000, n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def _learn(self, data: TrainingData, progress: FitProgress) -> tuple[str, str]:
        features = data.features.with_constant(1.0) if self.fit_intercept else data.features
        weights, by_sign = self._weighted_by_class(data.labels, data.weights)
        problem = LinearProblem(features.data, data.labels, weights, float(self.regularization), by_sign)
        if self.loss == "squared":
            fits = fit_squared(problem)
        else:
            fits = fit_liblinear(problem, self.loss, self.tol, self.max_iter, self.n_jobs)
        n_labels, d = data.labels.n_labels, self.n_features_in_
        intercepts = fits.weights[:, d:].sum(axis=1)  # 0 where there is no constant
        self.scorer_ = LinearScorer.of_labels(intercepts, fits.weights[:, :d])
        self.threshold_ = 0.5 if self.loss == "squared" else 0.0
        self.n_iter_, self.labels_fitted_ = fits.n_iter, fits.labels_fitted
        self.converged_ = fits.converged and fits.labels_fitted == n_labels
        if fits.labels_fitted < n_labels:
            return "interrupted", (
                f"The fit was interrupted after {fits.labels_fitted} of {n_labels} labels; the weights of "
                "the others are 0."
            )
        return "converged" if fits.converged else "iteration_limit", (
            "Some labels did not reach the tolerance; raise `max_iter`, scale the features, or "
            "raise `regularization`."
        )


class LinearProblem(NamedTuple):
    """What is to be minimised, but for the loss; only rows of positive weight.

    by_sign: what the losses of positive and of negative entries are multiplied with, if anything.
    """

    data: Any
    labels: LabelMatrix
    weights: PerRow
    penalty: float
    by_sign: SignFactors | None = None

    def weights_of(self, label: int, rows: Any, is_positive: Array) -> PerRow:
        """Give the weights of a label's entries."""
        weights = self.weights[rows]
        if self.by_sign is None:
            return weights
        positive, negative = self.by_sign
        return weights * np.where(is_positive, positive[label], negative[label])


class LinearFits(NamedTuple):
    """The models, (L, d); after an interrupt those of the labels that were fitted."""

    weights: Array
    n_iter: int
    converged: bool
    labels_fitted: int


def fit_squared(problem: LinearProblem) -> LinearFits:
    """Minimise squared losses; labels that were observed in the same rows share one factorisation."""
    n_labels = problem.labels.n_labels
    weights, is_fitted = np.zeros((n_labels, problem.data.shape[1])), np.zeros(n_labels, bool)
    positives, converged = sp.csc_array(problem.labels.positives), True
    try:
        for rows, members in _groups(problem):
            is_positive = positives[:, members[:1]].toarray()[rows, 0] > 0
            row_weights = problem.weights_of(members[0], rows, is_positive)
            roots = np.sqrt(row_weights)
            inputs = CenteredMatrix(problem.data[rows], row_weights, center=False)
            ridge = make_ridge(inputs, problem.penalty)
            for part in panels(len(members), _LABELS_AT_ONCE):
                targets = roots[:, None] * positives[:, members[part]].toarray()[rows]
                weights[members[part]] = ridge.solve(targets).T
                is_fitted[members[part]] = True
            converged &= ridge.converged
        is_fitted[:] = True  # those without observed rows too
    except KeyboardInterrupt as interrupt:
        note_interrupt(interrupt)
        if not is_fitted.any():
            raise
        weights[~is_fitted] = 0
    return LinearFits(weights, 1, converged, int(is_fitted.sum()))


def _groups(problem: LinearProblem) -> Iterator[tuple[Any, Array]]:
    """Give the sets of rows, and the labels whose entries are in them and nowhere else, of equal weights."""
    labels = problem.labels
    if problem.by_sign is not None:
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
    """Minimise logistic or squared hinge losses with LIBLINEAR's trust-region Newton method."""
    model, n_labels = _model(loss, problem.penalty, tol, max_iter), problem.labels.n_labels
    weights, steps = np.zeros((n_labels, problem.data.shape[1])), np.full(n_labels, -1)
    data = narrow_csr(problem.data) if sp.issparse(problem.data) else problem.data

    def one(label: int, rows: Any, is_positive: Array) -> None:
        entry_weights = problem.weights_of(label, rows, is_positive)
        weights[label], steps[label] = _fit_label(model, data[rows], entry_weights, is_positive)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # one for all labels comes at the end
            Parallel(n_jobs, require="sharedmem")(
                delayed(one)(label, *entries) for label, entries in enumerate(_entries(problem.labels))
            )
    except KeyboardInterrupt as interrupt:
        note_interrupt(interrupt)
        if not (steps >= 0).any():
            raise
    is_fitted = steps >= 0  # threads that are still at work may write to the arrays, but not to these copies
    n_iter = int(steps[is_fitted].max())
    return LinearFits(weights * is_fitted[:, None], n_iter, n_iter < max_iter, int(is_fitted.sum()))


def _model(loss: str, penalty: float, tol: float, max_iter: int) -> Any:
    shared = {"fit_intercept": False, "tol": tol, "max_iter": max_iter}
    if loss == "logistic":
        return LogisticRegression(C=1.0 / penalty, solver="liblinear", **shared)
    return LinearSVC(C=0.5 / penalty, loss="squared_hinge", dual=False, **shared)  # no factor 1/2 in its loss


def _entries(labels: LabelMatrix) -> Iterator[tuple[Any, Array]]:
    """Give the rows where each label was observed, and whether it is positive there."""
    positives = sp.csc_array(labels.positives)
    observed = None if labels.observed is None else sp.csc_array(labels.observed)
    for label in range(labels.n_labels):
        is_positive = np.zeros(len(labels), bool)
        is_positive[_rows_of(positives, label)] = True
        rows = slice(None) if observed is None else _rows_of(observed, label)
        yield rows, is_positive[rows]


def _fit_label(model: Any, data: Any, weights: PerRow, is_positive: Array) -> tuple[Array, int]:
    there = weights > 0  # LIBLINEAR leaves others out, and takes the one class that is left for the positive
    if not there.all():
        data, weights, is_positive = data[there], weights[there], is_positive[there]
    if len(is_positive) == 0:
        return np.zeros(data.shape[1]), 0
    if is_positive.all() or not is_positive.any():  # scikit-learn wants both; a row of 0 adds a constant
        blank = np.zeros((1, data.shape[1]))
        is_sparse = sp.issparse(data)
        data = sp.vstack([data, sp.csr_array(blank)], format="csr") if is_sparse else np.r_[data, blank]
        is_positive, weights = np.append(is_positive, not is_positive[0]), np.append(weights, 1.0)
    fitted = clone(model).fit(data, is_positive, sample_weight=weights)
    return fitted.coef_[0], int(np.max(fitted.n_iter_))
