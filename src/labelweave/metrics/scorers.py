"""The metrics as scikit-learn's ``scoring``: in searches, in cross-validation, wherever a scorer is taken.

scikit-learn's own scorers refuse targets with missing labels.  These hand them to the metrics, which leave
unobserved entries out, and ask the estimator for the response that a metric needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from labelweave.foundation.arguments import checked
from labelweave.foundation.sklearn_compat import _BaseScorer
from labelweave.labels import LabelMatrix
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
for _name in ("f1", "precision", "recall"):
    for _average in ("micro", "macro", "example"):
        _CASES[f"{_average}_{_name}"] = (
            getattr(label_sets, f"{_name}_score"),
            _LABELS,
            {"average": _average},
        )
    _CASES[f"hierarchical_{_name}"] = (getattr(hierarchies, f"hierarchical_{_name}_score"), _LABELS, {})
for _average in ("micro", "macro", "weighted"):
    _metric = rankings.average_precision_score
    _CASES[f"{_average}_average_precision"] = (_metric, _SCORES, {"average": _average})
_CASES["fmax"] = (hierarchies.fmax_score, _PROBABILITIES, {})


class LabelScorer(_BaseScorer):  # type: ignore[misc]
    """A metric as a scorer: called with a fitted estimator, rows and targets, perhaps ``sample_weight``."""

    def _score(self, method_caller: Any, estimator: Any, X: Any, y_true: Any, **kwargs: Any) -> float:
        settings = self._kwargs | kwargs
        unknown = settings.pop("unknown_labels", "missed")
        if probabilities.has_many_labels(y_true):
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
        """Ask for label sets, scores or probabilities; ``method_caller`` keeps them for other scorers."""
        if self._response_method == _LABELS:
            found = method_caller(estimator, "predict", X, pos_label=None)
            found = tags_of_model(found, estimator)
            return found.reshape(-1, 1) if getattr(found, "ndim", 2) == 1 else found
        if self._response_method == _PROBABILITIES:
            return label_probabilities(estimator, X, n_labels)
        # scikit-learn takes one label for one class, whose scores it negates
        if n_labels == 1 or not hasattr(estimator, "decision_function"):
            return label_scores(estimator, X, n_labels)
        scores = method_caller(estimator, "decision_function", X, pos_label=None)
        return as_score_table(scores, estimator, n_labels)


@checked
def get_scorer(name: str, **settings: Any) -> LabelScorer:
    """Make a scorer for scikit-learn's ``scoring``, for targets with missing labels too.

    Parameters
    ----------
    name : str
        One of :func:`get_scorer_names`; "precision_at_3" is "precision_at_k" with k=3.  A loss or an
        error begins with ``neg_`` and is negated.
    **settings : object
        Parameters of the metric, such as k, propensity, taxonomy, seen_classes or zero_division.  Those of
        hierarchies take a taxonomy, and targets whose labels have names.  unknown_labels ("missed", "ignore"
        or "raise") is of labels that the estimator was not fitted to, which count as missed.

    Returns
    -------
    LabelScorer
        Called as ``scorer(estimator, X, y)``; the greater, the better.

    Raises
    ------
    ValueError
        If there is no such scorer.

    Notes
    -----
    Label sets are those of ``predict``.  Rankings are by ``decision_function``, or for want of it by
    ``predict_proba``, which metrics of probabilities need.  A label that a fold holds out without an observed
    entry is left out there.  scikit-learn's own splitters by class, the default of ``cv`` and any number of
    folds, refuse missing labels; give ``KFold()`` or one of :mod:`labelweave.splits`.  Halving searches also
    look for classes in y to find how few rows to begin with; give them ``min_resources`` as a number.

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
        raise ValueError(f"There is no scorer {name!r}; give one of {', '.join(get_scorer_names())}.")
    metric, response, usual = _CASES[name]
    return LabelScorer(metric, -1 if name.startswith("neg_") else 1, usual | settings, response)


@checked
def get_scorer_names() -> list[str]:
    """Name the scorers that :func:`get_scorer` makes.

    Returns
    -------
    list of str
        The names, sorted.
    """
    return sorted(_CASES)
