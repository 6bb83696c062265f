"""Binary relevance: one penalized linear model per label, fitted to the rows where the label is observed.

It is the baseline of Yu et al. 2014 (LEML), section 5: their problem (2) with a squared Frobenius norm and
no bound on the rank.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from labelweave.estimators.base import LabelClassifier
from labelweave.estimators.binary_relevance.fit import LinearFits, LinearProblem, fit_liblinear, fit_squared
from labelweave.estimators.entry_weights import sure_weights
from labelweave.estimators.journal import FitArguments, FitProgress, warn_of_end
from labelweave.estimators.parameters import POSITIVE, SHARED, ClassWeight, keep_parameters
from labelweave.estimators.scorers import LinearScorer
from labelweave.estimators.seen_rows import SeenRows
from labelweave.foundation.sklearn_compat import StrOptions
from labelweave.labels import LabelMatrix
from labelweave.labels.label_names import weights_of_entries
from labelweave.model_files import storable
from labelweave.model_files.schema import Field, Number, count


@storable("BinaryRelevance")
class BinaryRelevance(LabelClassifier):
    """One linear model per label, fitted to the rows where the label is observed.

    It minimizes, over the weights Z, one column per label,

    ``sum over observed (i, l) of w_i loss(y_il, z_l . x_i) + alpha/2 ||Z||^2``.

    An entry with a probability has its expected loss; with the squared hinge ``|2 p - 1|`` times
    the loss of the more likely value.  Labels do not influence each other.  A label observed with only one
    value gets the weights of this problem; with a squared loss and no positive entry they are 0.

    Parameters
    ----------
    loss : {"squared_error", "log_loss", "squared_hinge"}, default="squared_error"
        ``1/2 (y - s)^2`` with y 1 and 0; ``log(1 + exp(-y s))`` or ``1/2 max(0, 1 - y s)^2`` with y 1 and -1.
    alpha : float, default=1.0
        The penalty, above 0.
    fit_intercept : bool, default=True
        Whether to add a constant feature 1, whose weight is penalized like others.
    class_weight : {"balanced"}, dict, list of dict or None, default=None
        Weights of classes, which multiply the row weights: a dict, or "balanced" for rows /
        (classes x rows of the class), with rows counted by their weights.  With many labels they multiply the
        losses of entries: "balanced" by the observed positives and negatives of each label, a dict such as
        ``{0: 1, 1: 5}`` for all labels, or a list of one dict per label.  The squared loss
        then takes one factorization per label.
    tol : float, default=1e-4
        LIBLINEAR's tolerance of the gradient, for the logistic loss and the squared hinge.  The squared
        loss is solved by factorization, and by LSMR for more than 8,000 rows and features.
    max_iter : int, default=1000
        Maximum number of LIBLINEAR's Newton steps.
    n_jobs : int or None, default=None
        Number of threads for the labels, with the logistic loss and the squared hinge; the result does not
        depend on it.
    verbose : bool or int, default=0
        Whether to write progress to stderr, one line every two seconds; 2 for one line per step.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (L, d), ndarray of shape (L,)
        The weights, one row per label, and the intercepts.
    threshold_ : float
        Labels with a higher score are predicted, 0.5 for the squared loss and 0 for the others;
        ``decision_function`` returns scores minus this.
    classes_ : ndarray of shape (L,)
        The label names, label numbers, or classes.
    n_features_in_, feature_names_in_ : int, ndarray of shape (d,)
        Number and names of the features seen in fit; names only for a DataFrame.
    n_iter_ : int
        Maximum number of Newton steps over the labels; 1 for the squared loss.
    converged_ : bool
        Whether the objectives of all labels are certified: solved in closed form or, with the other losses,
        with a gradient within ``tol``, whose square over 2 ``alpha`` bounds the suboptimality.
    status_ : {"converged", "iteration_limit", "interrupted"}
        Why the fit ended.
    labels_fitted_ : int
        Number of labels fitted before an interrupt (Ctrl-C), or all; the weights of the others are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave import BinaryRelevance
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> Y = np.array([[0, 1], [0, 1], [1, np.nan], [1, 0]])
    >>> BinaryRelevance("log_loss", alpha=0.1).fit(X, Y).predict([[0.2], [2.9]])
    array([[0, 1],
           [1, 0]])
    """

    threshold_: float

    _stored: ClassVar[dict[str, Field]] = {"labels_fitted_": count(), "threshold_": Number()}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SHARED,
        "loss": [StrOptions({"squared_error", "log_loss", "squared_hinge"})],
        "alpha": [POSITIVE],
    }

    def __init__(
        self, loss: str = "squared_error", *, alpha: float = 1.0, fit_intercept: bool = True,
        class_weight: ClassWeight = None, tol: float = 1e-4, max_iter: int = 1000, n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def _fit(self, rows: SeenRows, before: Any, arguments: FitArguments) -> None:
        progress = FitProgress(self, arguments, 0)
        labels, d = self._begin(rows), self.n_features_in_
        fits = self._solve(rows, labels)
        n_labels = labels.n_labels
        intercepts = fits.weights[:, d:].sum(axis=1)  # 0 where there is no constant
        self.scorer_ = LinearScorer.of_labels(intercepts, fits.weights[:, :d])
        self.threshold_ = 0.5 if self.loss == "squared_error" else 0.0
        self.trace_, self.n_iter_, self.labels_fitted_ = [], fits.n_iter, fits.labels_fitted
        self.converged_ = fits.converged and fits.labels_fitted == n_labels
        progress.close()
        self._tell_end(fits, n_labels)

    def _solve(self, rows: SeenRows, labels: LabelMatrix) -> LinearFits:
        features, weights = rows.features.astype(np.float64), rows.weights
        entries = rows.entries
        if self.loss == "squared_hinge":
            labels, entries = labels.most_likely(), sure_weights(labels, entries)
        entries = None if entries is None else weights_of_entries(np.ones(len(labels)), entries)
        kept = np.flatnonzero(weights)
        if len(kept) < len(weights):
            features, labels, weights = features.rows(kept), labels[kept], weights[kept]
            entries = None if entries is None else entries[kept]
        features = features.with_constant(1.0) if self.fit_intercept else features
        weights, by_sign = self._weighted_by_class(labels, weights)
        problem = LinearProblem(features.data, labels, weights, float(self.alpha), by_sign, entries)
        if self.loss == "squared_error":
            return fit_squared(problem)
        return fit_liblinear(problem, self.loss, self.tol, self.max_iter, self.n_jobs)

    def _tell_end(self, fits: LinearFits, n_labels: int) -> None:
        if fits.labels_fitted < n_labels:
            self.status_ = "interrupted"
            warn_of_end(
                f"The fit was interrupted after {fits.labels_fitted} of {n_labels} labels; the weights of "
                "the others are 0."
            )
        elif not fits.converged:
            self.status_ = "iteration_limit"
            warn_of_end(
                "Some labels did not reach the tolerance; raise `max_iter`, scale the features, "
                "or raise `alpha`."
            )
        else:
            self.status_ = "converged"

    @property
    def _lowest_threshold(self) -> float:
        return float(self.threshold_)
