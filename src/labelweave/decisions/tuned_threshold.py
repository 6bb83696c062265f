"""Thresholds tuned on held-out rows, for any multi-label classifier."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils.metaestimators import available_if

from labelweave.decisions.base import DecisionClassifier
from labelweave.decisions.label_scores import decision_level
from labelweave.estimators.held_out import HeldOutScores, Rule, Share, best_thresholds
from labelweave.estimators.journal import where_rows_are
from labelweave.estimators.parameters import RandomState, keep_parameters
from labelweave.foundation.array_types import Array
from labelweave.foundation.sklearn_compat import Interval, StrOptions
from labelweave.model_files import ModelFileError, storable
from labelweave.model_files.schema import MEASURED, Field, Number, Numbers, Optional, count
from labelweave.postprocessing import choose_top_k, scores_above_top_k
from labelweave.postprocessing.thresholds.objective import ObjectiveName, read_objective

_AIMS = {"precision": "at precision {:g} with as many true positives as possible",
         "recall": "at recall {:g} with as few predictions as possible"}  # fmt: skip


@storable("TunedThresholdClassifier")
class TunedThresholdClassifier(DecisionClassifier):
    """Tune the thresholds of any multi-label classifier for a metric of label sets.

    Thresholds are tuned on out-of-fold scores of clones, each fitted to four fifths of the rows, and another
    clone is fitted to all rows; with more than 5,000 rows only one fifth is scored, and everything takes less
    than two fits.  Where the estimator has probabilities, thresholds are probabilities, and ``predict`` is
    ``predict_proba(X) > thresholds_``.

    Parameters
    ----------
    estimator : classifier
        Any with ``decision_function`` or ``predict_proba`` for many labels per row.
    objective : {"micro_f1", "macro_f1", "example_f1", "hamming_loss", "precision", "recall"}, \
            default="micro_f1"
        What to optimize.  For F1 scores with one threshold per label, unless ``shrinkage=0``, no label is
        predicted in more than twice its held-out positive rows plus one.  "precision" reaches the
        target with as many true positives as possible, "recall" with as few predictions as possible.
    scope : {"label", "global", "top_k"}, default="label"
        One threshold per label, one for all, or the same number of labels for every row, which is not for
        two classes.
    target : float or None, default=None
        The precision or recall to reach on the held-out rows, above 0 and at most 1: for every label with one
        threshold per label, else for all entries together.  Only these two objectives need and accept it.
    shrinkage : float or "auto", default="auto"
        With one threshold per label: how strongly labels with few positive rows are shrunk toward the best
        threshold for all labels.  With p positive rows a label's own threshold has the weight p / (p +
        shrinkage). "auto" is 50, or 0, 10 or 200 if that is clearly better in a cross-validation with five
        folds of the held-out rows.  Not for a target.
    response_method : {"auto", "decision_function", "predict_proba"}, default="auto"
        The scores to compare with thresholds; "auto" uses probabilities where the estimator has them.  With
        "decision_function" the model has no probabilities.
    cv : int, "prefit", splitter, iterable or None, default=None
        None holds out rows according to ``validation_fraction``.  A number of folds, or any ``cv`` of
        scikit-learn, fits once per fold.  "prefit" uses the estimator as it is, and all rows as held-out
        rows.
    validation_fraction : "auto" or float, default="auto"
        The share of rows to hold out, for ``cv=None``.  "auto" holds out each fifth of up to 5,000 rows in
        turn, which takes five more fits, and one fifth of more rows.
    random_state : int, RandomState instance or None, default=0
        Seed of the draw of held-out rows.

    Attributes
    ----------
    estimator_ : classifier
        The estimator fitted to all rows.
    thresholds_ : ndarray of float64, shape (L,)
        Higher probabilities or scores are predicted; not with "top_k".  A label without positive held-out
        rows starts from the best threshold for all labels, which pooled F1 scores may raise; if no label has
        any, thresholds are the estimator's own.
    shrinkage_ : float
        The shrinkage, chosen or given; 0 with one threshold for all or a target.  Not with "top_k".
    k_ : int
        Labels per row; only with "top_k".
    objective_value_ : float
        The metric on the held-out rows.
    classes_ : ndarray of shape (L,)
        The label names, label numbers, or classes.
    n_features_in_, feature_names_in_ : int, ndarray of shape (d,)
        Number and names of the features seen in fit, if the estimator has them.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.multiclass import OneVsRestClassifier
    >>> from labelweave import TunedThresholdClassifier, datasets
    >>> data = datasets.make_text_like(1000, 500, 10)
    >>> X, Y = data.X, data.Y.positives
    >>> plain = OneVsRestClassifier(LogisticRegression()).fit(X[:800], Y[:800])
    >>> tuned = TunedThresholdClassifier(OneVsRestClassifier(LogisticRegression())).fit(X[:800], Y[:800])
    >>> from labelweave.metrics import f1_score
    >>> [round(f1_score(Y[800:], model.predict(X[800:])), 1) for model in (plain, tuned)]
    [0.6, 0.8]
    """

    _stored: ClassVar[dict[str, Field]] = {
        "thresholds_": Optional(Numbers("K")),
        "shrinkage_": Optional(Number(0)),
        "k_": Optional(count(least=1)),
        "objective_value_": MEASURED,
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DecisionClassifier._shared_constraints,
        "objective": [
            StrOptions({"micro_f1", "macro_f1", "example_f1", "hamming_loss", "precision", "recall"})
        ],
        "scope": [StrOptions({"label", "global", "top_k"})],
        "target": [Interval(Real, 0, 1, closed="right"), None],
        "shrinkage": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self, estimator: Any, objective: ObjectiveName = "micro_f1", *,
        scope: Literal["label", "global", "top_k"] = "label", target: float | None = None,
        shrinkage: Literal["auto"] | float = "auto", response_method: str = "auto", cv: Any = None,
        validation_fraction: Share = "auto", random_state: RandomState = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def _refuse_together(self) -> None:
        read_objective(self.objective, self.target)

    @classmethod
    def _check_state(cls, state: dict[str, Any]) -> None:
        super()._check_state(state)
        name = "k_" if state["parameters"].get("scope") == "top_k" else "thresholds_"
        if name not in state["fitted"] or state["fitted"].get("k_", 1) > len(state["classes"]):
            raise ModelFileError(f"its {cls.__name__} has no {name} that fits its scope.")

    def _choose(self, held: HeldOutScores) -> None:
        for name in ("thresholds_", "shrinkage_", "k_"):
            self.__dict__.pop(name, None)
        if self.scope == "top_k":
            self.k_, self.objective_value_ = choose_top_k(
                held.labels, held.scores, self.objective, target=self.target, sample_weight=held.weights
            )
            return
        rule = Rule(self.objective, self.scope, self.shrinkage, self.target)
        level = decision_level(self.estimator_, self._response)
        self.thresholds_, self.objective_value_, self.shrinkage_ = best_thresholds(held, rule, level)

    @property
    def _for_sets(self) -> str:
        return "scope='top_k'" if self.scope == "top_k" else ""

    def _words(self, is_inside: bool) -> str:
        where = "on all rows" if self._is_prefit else "on held-out rows"
        aim = _AIMS.get(self.objective, "best for {}").format(self.target or self.objective)
        aim += f", {self.objective_value_:.4g} {where}"
        if self.scope == "top_k":
            return f"the {self.k_} best labels of every row, {aim}"
        low, high = float(np.min(self.thresholds_)), float(np.max(self.thresholds_))
        if self.scope == "global":
            return f"the threshold {low:.4g}, {aim}"
        pooled = f", shrinkage {self.shrinkage_:g}" if getattr(self, "shrinkage_", 0) else ""
        return f"one threshold per label, from {low:.4g} to {high:.4g}{pooled}, {aim}"

    def _decisions(self, scores: Array) -> Array:
        if self.scope == "top_k":
            return scores_above_top_k(scores, self.k_)
        return scores - self.thresholds_

    def _ranked(self, scores: Array) -> Array:
        if self.scope == "top_k":
            return scores - decision_level(self.estimator_, self._response)
        return scores - np.min(self.thresholds_)

    @property
    def _lowest_threshold(self) -> float:
        """The shift of scores that all fits share, here and in the estimator."""
        own = 0.0 if self.scope == "top_k" else float(np.min(self.thresholds_))
        return own + float(getattr(self.estimator_, "_lowest_threshold", 0.0))

    @property
    def _response(self) -> str:
        if self.response_method != "auto":
            return str(self.response_method)
        return "predict_proba" if hasattr(self.estimator, "predict_proba") else "decision_function"

    @available_if(lambda self: self._response == "predict_proba")
    @where_rows_are
    def predict_proba(self, X: Any) -> Array:
        """Return the estimator's own probabilities; see :meth:`KernelLogisticClassifier.predict_proba`."""
        table = np.concatenate(list(self._inner_blocks(X)))
        return np.asarray(self._form.probabilities(table))
