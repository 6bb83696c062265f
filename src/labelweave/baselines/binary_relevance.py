"""Binary relevance: a linear model a label, from observed entries only.

Yu et al. 2014 (LEML), section 5, compare with it; it is their problem (2) without a bound on the rank and
with the squared Frobenius norm as penalty.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from labelweave.baselines.baseline_classifier import BaselineClassifier, TrainingData, with_constant
from labelweave.baselines.linear_fits import LinearFits, LinearProblem, fit_liblinear, fit_squared
from labelweave.estimators.progress import FitProgress
from labelweave.estimators.scorers import LinearScorer, Scorer, scorer_of_parts
from labelweave.model_files import storable
from labelweave.sklearn_compat import Interval, StrOptions

__all__ = ["BinaryRelevance"]

_POSITIVE = Interval(Real, 0, None, closed="neither")


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
    tol : float, default=1e-4
        LIBLINEAR's tolerance of the gradient, for the logistic loss and the squared hinge.  The squared
        loss is solved by factorisation, and by LSMR for more than 8,000 rows and features.
    max_iter : int, default=1000
        The largest number of LIBLINEAR's Newton steps.
    n_jobs : int or None, default=None
        Threads over which the labels are spread with these two losses; the result does not depend on it.

    Attributes
    ----------
    coef_ : ndarray of shape (L, d)
        The weights, one row a label.
    intercept_ : ndarray of shape (L,)
        The intercepts.
    threshold_ : float
        Where a label is predicted, 0.5 for the squared loss and 0 for the others;
        ``decision_function`` gives scores less this.
    classes_ : ndarray of shape (L,)
        The label names, label numbers, or classes.
    n_features_in_ : int
        Features seen in fit.
    feature_names_in_ : ndarray of shape (d,)
        Their names, when X was a frame.
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": [StrOptions({"squared", "logistic", "squared_hinge"})],
        "regularization": [_POSITIVE],
        "fit_intercept": ["boolean"],
        "tol": [_POSITIVE],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        loss="squared",
        *,
        regularization=1.0,
        fit_intercept=True,
        tol=1e-4,
        max_iter=1000,
        n_jobs=None,
    ):
        self.loss = loss
        self.regularization = regularization
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    @classmethod
    def _scorer_of_earlier_file(cls, state: dict[str, Any]) -> Scorer:
        return scorer_of_parts(state["fitted"])

    def _learn(self, data: TrainingData, progress: FitProgress) -> tuple[str, str]:
        fits, n_labels = self._fit_labels(data), data.labels.n_labels
        d = self.n_features_in_
        intercepts = fits.weights[:, d:].sum(axis=1)  # 0 where there is no constant
        self.scorer_ = LinearScorer(intercepts, fits.weights[:, :d])
        self.threshold_ = 0.5 if self.loss == "squared" else 0.0
        self.n_iter_, self.labels_fitted_ = fits.n_iter, fits.labels_fitted
        self.converged_ = fits.converged and fits.labels_fitted == n_labels
        if fits.labels_fitted < n_labels:
            return "interrupted", (
                f"The fit was interrupted after {fits.labels_fitted} of {n_labels} labels; the weights of "
                "the others are 0."
            )
        return "converged" if fits.converged else "iteration_limit", (
            "Some labels did not reach the tolerance; raise max_iter, scale the features, or raise "
            "regularization."
        )

    def _fit_labels(self, data: TrainingData) -> LinearFits:
        features = with_constant(data.features) if self.fit_intercept else data.features
        problem = LinearProblem(features.data, data.labels, data.weights, float(self.regularization))
        if self.loss == "squared":
            return fit_squared(problem)
        return fit_liblinear(problem, self.loss, self.tol, self.max_iter, self.n_jobs)
