"""Max-margin multi-label classification with a prior on label correlations (M3L).

Hariharan, Vishwanathan and Varma, "Efficient max-margin multi-label
classification with applications to zero-shot learning", Machine Learning 88
(2012).  The optimisation problem is stated in
:mod:`labelweave.problems.margin_dual`.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import _fit_context
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight

from labelweave.estimators.base import Array, GapProgress, LabelClassifier
from labelweave.estimators.targets import read_targets
from labelweave.labels import LabelCovariance, LabelMatrix, Taxonomy
from labelweave.model_files import storable
from labelweave.problems import MarginData, make_margin_dual
from labelweave.solvers import DualCoordinateAscent

__all__ = ["MaxMarginClassifier"]

_SINGLE_PRECISION_TOL = 1e-5  # rounding in single precision hides gaps below this
_SINGLE_PRECISION_BOUND = 1e5  # ... and below the largest dual variable over this
_NON_NEGATIVE = Interval(Real, 0, None, closed="left")


@storable("MaxMarginClassifier")
class MaxMarginClassifier(LabelClassifier):
    """Linear max-margin classifier for many related labels, with a certificate.

    It minimises (M3L, Hariharan et al. 2012, equations 11 to 14)

    ``1/2 tr(Z R^-1 Z^T) + 2 C sum_il w_i max(0, c_il - y_il z_l . x_i)``

    over the weights Z, one column a label.  R is the label covariance, w the sample
    weights and c the cost of getting label l of row i wrong; labels that were not
    observed add nothing.  With R the identity and unit costs every label is a
    binary support vector machine of penalty 2 C.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses, the paper's C; larger fits the training data more closely.
    kernel : {"linear"}, default="linear"
        The kernel between rows.
    label_covariance : LabelCovariance, Taxonomy, array-like of shape (L, L) or None, default=None
        The prior covariance R between labels; None is the identity.  A taxonomy
        stands for :meth:`LabelCovariance.from_taxonomy`; its nodes are found by label name.
    fit_intercept : bool, default=True
        Whether to add a constant feature 1.  The intercept is then regularised and coupled
        by R like any weight (section 3 of the paper).
    false_negative_cost : float or array-like of shape (L,), default=1.0
        Cost of missing a label that is there, half of the paper's loss (equation 5).
    false_positive_cost : float or array-like of shape (L,), default=1.0
        Cost of predicting a label that is not there.
    tol : float, default=1e-3
        The relative duality gap, (primal - dual) / max(1, abs(primal)), to reach.
    max_iter : int, default=1000
        The largest number of rounds; a round is one sweep over all rows and a few over those
        that still gain.
    precision : {"auto", "float32", "float64"}, default="auto"
        Arithmetic while solving.  "auto" is float32 for ``tol >= 1e-5`` and
        ``2 C max(w) <= 1e5 tol``, where rounding does no
        harm.  The weights, and the gap reported at the end, are computed in float64 in any case.
    n_jobs : int or None, default=None
        Threads; labels are spread over them when R is the identity.  The result is the
        same to the last bit for any number.
    random_state : int, RandomState instance or None, default=0
        Fixes the order in which rows are visited.

    Attributes
    ----------
    coef_ : ndarray of shape (L, d)
        The weights, one row a label.
    intercept_ : ndarray of shape (L,)
        The intercepts.
    classes_ : ndarray of shape (L,)
        The label names, label numbers, or classes.
    n_features_in_ : int
        Features seen in fit.
    feature_names_in_ : ndarray of shape (d,)
        Their names, when X was a frame.
    converged_ : bool
        Whether the gap reached ``tol``.
    status_ : {"converged", "iteration_limit", "interrupted"}
        Why the fit ended.
    n_iter_ : int
        Rounds done.
    duality_gap_ : float
        The relative duality gap of the result: the objective is at most this share above
        its minimum.
    trace_ : list of TraceRecord
        Time, primal, dual, gap and active share at every check of the gap.

    Notes
    -----
    Dense rows are read as sparse ones; for dense data with more rows than features
    coordinate ascent converges slowly.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave import MaxMarginClassifier
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.4]])
    >>> Y = np.array([[0, 1], [1, 0], [1, np.nan]])
    >>> model = MaxMarginClassifier(C=10.0, tol=1e-6).fit(X, Y)
    >>> model.predict(X)
    array([[0, 1],
           [1, 0],
           [1, 0]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "kernel": [StrOptions({"linear"})],
        "label_covariance": [LabelCovariance, Taxonomy, "array-like", None],
        "fit_intercept": ["boolean"],
        "false_negative_cost": [_NON_NEGATIVE, "array-like"],
        "false_positive_cost": [_NON_NEGATIVE, "array-like"],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "precision": [StrOptions({"auto", "float32", "float64"})],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        C=1.0,
        *,
        kernel="linear",
        label_covariance=None,
        fit_intercept=True,
        false_negative_cost=1.0,
        false_positive_cost=1.0,
        tol=1e-3,
        max_iter=1000,
        precision="auto",
        n_jobs=None,
        random_state=0,
    ):
        self.C = C
        self.kernel = kernel
        self.label_covariance = label_covariance
        self.fit_intercept = fit_intercept
        self.false_negative_cost = false_negative_cost
        self.false_positive_cost = false_positive_cost
        self.tol = tol
        self.max_iter = max_iter
        self.precision = precision
        self.n_jobs = n_jobs
        self.random_state = random_state

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MaxMarginClassifier:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n, d)
            The training rows.
        y : array-like of shape (n, L) or (n,), sparse matrix, DataFrame or LabelMatrix
            Labels 0/1 or -1/1 with NaN where unobserved, or one class a row.
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights of the rows' losses.

        Returns
        -------
        MaxMarginClassifier
            The fitted model itself.

        Raises
        ------
        ValueError
            If the data, or their combination with the parameters, make no sense; the row,
            column or label is named.
        """
        features = self._read_features(X, reset=True)
        labels, self._form = read_targets(y)
        self._check_lengths(features, labels)
        self.classes_ = self._form.classes
        weights = _check_sample_weight(sample_weight, features.data, ensure_non_negative=True)
        data = MarginData(
            features=features,
            labels=labels,
            covariance=self._covariance(labels),
            upper=2.0 * self.C * weights,
            margins=self._margins(labels.n_labels),
            intercept=self.fit_intercept,
        )
        self._solve(data)
        return self

    def _solve(self, data: MarginData) -> None:
        dual = make_margin_dual(data, self._dtype(data))
        progress = GapProgress(self, self.tol)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        solver = DualCoordinateAscent(
            self.tol, self.max_iter, effective_n_jobs(self.n_jobs), seed, on_check=progress
        )
        result = solver.solve(dual)
        progress.close()
        self.coef_, self.intercept_ = dual.solution()
        self._keep_result(result)

    def _dtype(self, data: MarginData) -> Any:
        if self.precision != "auto":
            return np.dtype(self.precision)
        largest = max(data.upper.max(initial=0.0) / _SINGLE_PRECISION_BOUND, _SINGLE_PRECISION_TOL)
        return np.float32 if self.tol >= largest else np.float64

    def _covariance(self, labels: LabelMatrix) -> LabelCovariance:
        given = self.label_covariance
        if given is None:
            return LabelCovariance.identity(labels.n_labels)
        if isinstance(given, Taxonomy):
            return LabelCovariance.from_taxonomy(given, [str(name) for name in self.classes_])
        covariance = given if isinstance(given, LabelCovariance) else LabelCovariance.dense(given)
        if covariance.n_labels != labels.n_labels:
            raise ValueError(
                f"label_covariance is over {covariance.n_labels} labels but y has {labels.n_labels}; "
                "they must agree."
            )
        return covariance

    def _margins(self, n_labels: int) -> Array:
        costs = {name: getattr(self, name) for name in ("false_negative_cost", "false_positive_cost")}
        return np.stack([_cost_by_label(name, cost, n_labels) for name, cost in costs.items()])


def _cost_by_label(name: str, cost: Any, n_labels: int) -> Array:
    costs = np.asarray(cost, dtype=np.float64)
    if costs.ndim > 0 and costs.shape != (n_labels,):
        raise ValueError(
            f"{name} has shape {costs.shape}; give one number, or one for each of {n_labels} labels."
        )
    if not np.isfinite(costs).all() or (costs < 0).any():
        raise ValueError(f"{name} is {cost}; costs must be finite numbers >= 0.")
    return np.broadcast_to(costs, (n_labels,)).astype(np.float64)
