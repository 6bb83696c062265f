"""The metrics as scikit-learn scorers, for searches and cross-validation.

scikit-learn's own scorers refuse targets with missing labels.  These pass them to the metrics, which ignore
unobserved entries, and request the response method that each metric needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from typing import Any

from labelweave.foundation.arguments import checked
from labelweave.foundation.sklearn_compat import _BaseScorer
from labelweave.labels import LabelMatrix
from labelweave.labels.targets import has_many_labels
from labelweave.metrics import class_metrics, hierarchies, label_sets, probabilities, rankings, top_k
from labelweave.metrics.known_labels import (
    as_score_table,
    fitted_inside,
    label_probabilities,
    label_scores,
    tags_of_model,
    truth_for,
    widened,
)

_LABELS, _SCORES, _PROBABILITIES = "predict", ("decision_function", "predict_proba"), "predict_proba"
_METRICS: list[tuple[Any, Any, str]] = [
    (_LABELS, label_sets, "subset_accuracy hamming_loss"),
    (_LABELS, class_metrics, "taxonomic_loss parent_accuracy harmonic_mean_accuracy"),
    (_LABELS, hierarchies, "h_loss"),
    (_SCORES, rankings, "average_auc ranking_loss coverage_error label_ranking_average_precision"),
    (_SCORES, top_k, "precision_at_k ndcg_at_k propensity_scored_precision_at_k"),
    (_PROBABILITIES, probabilities, "log_loss expected_calibration_error"),
    (_PROBABILITIES, class_metrics, "mean_reciprocal_rank"),
    (_PROBABILITIES, hierarchies, "smin_loss"),
]
_CASES = dict[str, tuple[Callable[..., Any], Any, dict[str, Any]]]()
for _response, _home, _names in _METRICS:
    for _name in _names.split():
        _sign = "neg_" if _name.endswith(("_loss", "_error")) else ""
        _CASES[_sign + _name] = (getattr(_home, _name), _response, {})
_AVERAGED: list[tuple[Any, Any, str, str]] = [
    (_LABELS, label_sets, "f1_score precision_score recall_score", "micro macro example"),
    (_SCORES, rankings, "average_precision_score", "micro macro weighted"),
]
for _response, _home, _names, _averages in _AVERAGED:
    for _name, _average in product(_names.split(), _averages.split()):
        _short = _name.removesuffix("_score")
        _CASES[f"{_average}_{_short}"] = (getattr(_home, _name), _response, {"average": _average})
for _name in ("hierarchical_f1", "hierarchical_precision", "hierarchical_recall"):
    _CASES[_name] = (getattr(hierarchies, f"{_name}_score"), _LABELS, {})
_CASES["fmax"] = (hierarchies.fmax_score, _PROBABILITIES, {})


class LabelScorer(_BaseScorer):  # type: ignore[misc]
    """A metric as a scorer: called with a fitted estimator, rows, targets and maybe ``sample_weight``."""

    def _score(self, method_caller: Any, estimator: Any, X: Any, y_true: Any, **kwargs: Any) -> float:
        settings = self._kwargs | kwargs
        unknown = settings.pop("unknown_labels", "missed")
        if has_many_labels(y_true):
            y_true = LabelMatrix.from_any(truth_for(y_true, estimator, unknown))
            names = getattr(fitted_inside(estimator), "label_names_", y_true.words)
            response = self._of_labels(method_caller, estimator, X, min(len(names), y_true.n_labels))
            response = widened(response, y_true, self._response_method == _LABELS)
        elif self._response_method == _PROBABILITIES:
            response = estimator.predict_proba(X)
            settings = {"classes": estimator.classes_} | settings
        else:
            response = method_caller(estimator, "predict", X, pos_label=None)
        return float(self._sign * self._score_func(y_true, response, **settings))

    def _of_labels(self, method_caller: Any, estimator: Any, X: Any, n_labels: int) -> Any:
        """Return label sets, scores or probabilities; ``method_caller`` caches them for other scorers."""
        if self._response_method == _LABELS:
            found = method_caller(estimator, "predict", X, pos_label=None)
            found = tags_of_model(found, estimator)
            return found.reshape(-1, 1) if getattr(found, "ndim", 2) == 1 else found
        if self._response_method == _PROBABILITIES:
            return label_probabilities(estimator, X, n_labels)
        # scikit-learn takes a single label for one class, and negates its scores
        if n_labels == 1 or not hasattr(estimator, "decision_function"):
            return label_scores(estimator, X, n_labels)
        scores = method_caller(estimator, "decision_function", X, pos_label=None)
        return as_score_table(scores, estimator, n_labels)


@checked
def get_scorer(name: str, **settings: Any) -> LabelScorer:
    """Make a scorer for scikit-learn's ``scoring`` that accepts targets with missing labels.

    Parameters
    ----------
    name : str
        One of :func:`get_scorer_names`; "precision_at_3" is "precision_at_k" with k=3.  The name of a loss or
        error begins with ``neg_``, and its value is negated.
    **settings : object
        Parameters of the metric, such as k, propensity, taxonomy, seen_classes or zero_division.
        Hierarchical metrics need a taxonomy, and targets with label names.  unknown_labels ("missed",
        "ignore" or "raise") is for labels that the estimator was not fitted to; they count as missed by
        default.

    Returns
    -------
    LabelScorer
        Called as ``scorer(estimator, X, y)``; higher is better.

    Raises
    ------
    ValueError
        If there is no scorer of that name.

    Notes
    -----
    Label sets come from ``predict``, rankings from ``decision_function`` or, without it, from
    ``predict_proba``, which metrics of probabilities need.  A label without an observed entry in a held-out
    fold is ignored there.  scikit-learn's stratified splitters, the default of ``cv`` and any number of
    folds, refuse missing labels; pass ``KFold()`` or a splitter of :mod:`labelweave.splits`.  Halving
    searches count classes in y to choose the first number of rows; pass them ``min_resources`` as a number.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import GridSearchCV
    >>> from labelweave import LowRankClassifier
    >>> from labelweave.metrics import get_scorer
    >>> from labelweave.splits import IterativeStratifiedKFold
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> Y = (X[:, :3] > 0).astype(float)
    >>> Y[::5, 0] = np.nan
    >>> search = GridSearchCV(
    ...     LowRankClassifier(),
    ...     {"rank": [1, 3]},
    ...     scoring=get_scorer("micro_f1"),
    ...     cv=IterativeStratifiedKFold(3),
    ... )
    >>> search.fit(X, Y).best_params_
    {'rank': 3}
    """
    numbered = re.fullmatch(r"(\w+_at_)(\d+)", str(name))
    if numbered:
        name, settings = numbered[1] + "k", settings | {"k": int(numbered[2])}
    if name not in _CASES:
        raise ValueError(f"There is no scorer {name!r}; pass one of {', '.join(get_scorer_names())}.")
    metric, response, usual = _CASES[name]
    return LabelScorer(metric, -1 if name.startswith("neg_") else 1, usual | settings, response)


@checked
def get_scorer_names() -> list[str]:
    """Return the names of the scorers that :func:`get_scorer` makes.

    Returns
    -------
    list of str
        The names, sorted.
    """
    return sorted(_CASES)
