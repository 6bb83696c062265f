"""Estimators as members: out-of-fold scores, and a scorer of new rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from labelweave.decisions.automatic.plan import MEMBERS
from labelweave.decisions.automatic.scorers import log_odds
from labelweave.decisions.automatic.table import TrainingTable
from labelweave.decisions.base import DecisionClassifier
from labelweave.estimators.base import LabelClassifier
from labelweave.estimators.label_predictions import LabelPredictions
from labelweave.estimators.scorers import Scorer
from labelweave.features import FeatureMatrix
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array, RowsByLabels
from labelweave.foundation.config import PartInterrupted, was_interrupted
from labelweave.labels.targets import UnobservedLabelWarning
from labelweave.metrics.known_labels import label_scores
from labelweave.model_files import storable
from labelweave.model_files.schema import Made, Numbers, OneOf

_RESPONSES = ("predict_proba", "decision_function")
_ENTRIES_TO_CHOOSE_BY = 2_000_000


def named_members(members: str | Sequence[Any]) -> dict[str, Any]:
    """Return members by name: None for built-in ones, estimators by class and number; empty for "auto".

    Raises ValueError if there are none, one occurs twice, or one is neither a name nor an estimator.
    """
    found: dict[str, Any] = {}
    if isinstance(members, str):
        return found
    for member in members:
        is_estimator = hasattr(member, "fit") and hasattr(member, "get_params")
        if isinstance(member, type) or not (is_estimator or member in MEMBERS) or member in list(found):
            found = {}
            break
        if not is_estimator:
            found[member] = None
            continue
        kind = type(member).__name__
        alike = sum(name.split(" ")[0] == kind for name in found)
        found[f"{kind} {alike + 1}" if alike else kind] = member
    if not found:
        raise ParameterError(
            f"`members={list(members)!r}`; pass 'auto', or a list of distinct names among "
            f"{', '.join(map(repr, MEMBERS))} and of multi-label estimators, as RandomForestClassifier()."
        )
    return found


def names_of_members(members: str | Sequence[Any]) -> str | list[str]:
    """Return the names of members in a model file: those of their classes for estimators."""
    if isinstance(members, str):
        return members
    is_read = all(isinstance(member, str) for member in members)  # of a model loaded from a file
    return list(members if is_read else named_members(members))


def check_member(name: str, estimator: Any, table: TrainingTable) -> None:
    """Reject an estimator without scores, or one that does not accept missing labels where there are some."""
    if not any(hasattr(estimator, response) for response in _RESPONSES):
        raise ValueError(f"The member {name} has neither predict_proba nor decision_function.")
    inner = estimator
    while isinstance(inner, DecisionClassifier):
        inner = inner.estimator
    if np.isnan(table.targets).any() and not isinstance(inner, LabelClassifier):
        raise ValueError(
            f"The member {name} does not support missing labels, which y has; use members of labelweave."
        )


def _response(estimator: Any) -> str:
    return next(response for response in _RESPONSES if hasattr(estimator, response))


def estimator_scores(
    table: TrainingTable, candidates: Sequence[Any], fold: int, best: int | None = None
) -> Array:
    """Score the rows of a fold with clones of estimators fitted to the others: (candidates, n, L).

    best: the number of the only one that is fitted.
    """
    candidates = candidates if best is None else [candidates[best]]
    train, held = table.split(fold)
    rows, data, response = table.rows(train), table.features.rows(held).data, _response(candidates[0])
    n_labels = table.targets.shape[1]
    models = [_fitted(one, rows) for one in candidates]
    return np.stack([scores_of(one, response, data, n_labels) + _taken_off(one, response) for one in models])


def estimator_fit(table: TrainingTable, candidates: Sequence[Any], best: int) -> tuple[Scorer, str]:
    """Fit the best of several estimators to all rows; also return which it is, in words."""
    best_one = candidates[best]
    whole, words = _fitted(best_one, table), " ".join(str(best_one).split())
    response = _response(best_one)
    added = np.full(table.targets.shape[1], _taken_off(whole, response))
    return EstimatorScorer(added, whole, response), words


def _taken_off(fitted: Any, response: str) -> float:
    """Return the shift of this fit's decision values, its lowest threshold."""
    return float(getattr(fitted, "_lowest_threshold", 0.0)) if response == "decision_function" else 0.0


def _rows_to_choose_by(table: TrainingTable) -> Array:
    return np.arange(0, len(table.targets), 1 + table.targets.size // _ENTRIES_TO_CHOOSE_BY)


def some_scores(table: TrainingTable, fold: int, scores: Array) -> Array:
    """Return the scores of the rows of a fold that are used to choose among estimators."""
    return scores[:, np.isin(table.split(fold)[1], _rows_to_choose_by(table))]


def best_estimator(table: TrainingTable, numbers: Sequence[int], folds: Sequence[Array]) -> int:
    """Return the number of the scores, of ``folds`` by :func:`some_scores`, of least probability error."""
    rows = _rows_to_choose_by(table)
    some = table.rows(rows[np.isin(table.folds[rows], numbers)])
    tables = np.empty((len(folds[0]), *some.targets.shape))
    for part, number in zip(folds, numbers, strict=True):
        tables[:, some.folds == number] = part
    return int(np.argmin([some.loss(some.curves(one).probabilities(one)) for one in tables]))


def _fitted(estimator: Any, table: TrainingTable) -> Any:
    """Fit a clone, with a seed wherever it has none, and with weights if it accepts them."""
    fresh = clone(estimator)
    seeds = {key: table.seed for key, value in fresh.get_params().items()
             if key.split("__")[-1] == "random_state" and value is None}  # fmt: skip
    fresh.set_params(**seeds)
    labels, is_ours = table.labels, isinstance(fresh, LabelPredictions)
    targets: Any = labels.most_likely().to_dense()
    targets = targets if np.isnan(targets).any() else targets.astype(np.int64)
    if labels.flip_probabilities is not None and is_ours:
        targets = labels
    elif targets.shape[1] == 1 and not (is_ours and not hasattr(fresh, "predict_proba")):
        targets = targets[:, 0]  # others keep a column, where a single class is no error
    is_weighted = np.ptp(table.weights) > 0
    if is_weighted and not has_fit_parameter(fresh, "sample_weight"):
        raise ValueError(f"The member {type(estimator).__name__} does not support sample_weight; omit it.")
    given = {"sample_weight": table.weights} if is_weighted else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnobservedLabelWarning)  # the warning is issued once, for all rows
        fitted = fresh.fit(table.features.data, targets, **given)
    if was_interrupted():  # this fit caught it and returned a partial result
        raise PartInterrupted
    return fitted


def scores_of(fitted: Any, response: str, data: Any, n_labels: int) -> RowsByLabels:
    """Compute decision values, or the log-odds of probabilities: shape (n, L)."""
    found = responses(fitted, response, data, n_labels)
    return log_odds(found) if response == "predict_proba" else found


def responses(fitted: Any, response: str, data: Any, n_labels: int) -> RowsByLabels:
    """Compute label probabilities or decision values from any form that scikit-learn returns: (n, L)."""
    table = label_scores(fitted, data, n_labels, response).astype(np.float64)
    if not np.isfinite(table).all():
        what = f"{type(fitted).__name__}.{response} returned numbers that are not finite"
        raise ValueError(f"{what}; scale the features, or leave this member out.")
    return table


@storable(
    "EstimatorScorer",
    {"intercept_": Numbers("L"), "estimator": Made(LabelPredictions), "response": OneOf(_RESPONSES)},
)
@dataclass(frozen=True)
class EstimatorScorer(Scorer):
    """Label scores of a fitted estimator; a model file stores estimators of labelweave only.

    response: the method to call, decision_function, or predict_proba for log-odds.
    """

    estimator: Any
    response: str = "decision_function"

    def takes(self, n_features: int) -> bool:
        if getattr(self.estimator, "n_features_in_", None) != n_features:
            return False
        try:
            self.scores(FeatureMatrix(np.zeros((1, n_features))))
        except (AttributeError, ValueError):  # of other labels, or without that method
            return False
        return True

    def scores(self, features: FeatureMatrix) -> RowsByLabels:
        read = features if isinstance(self.estimator, LabelClassifier) else features.data
        return scores_of(self.estimator, self.response, read, self.n_labels) + self.intercept_

    def to_state(self) -> dict[str, Any]:
        if not isinstance(self.estimator, LabelPredictions):
            raise ValueError(
                f"its member {type(self.estimator).__name__} cannot be stored in a model file; use "
                "labelweave's estimators, or pickle the model."
            )
        return super().to_state()
