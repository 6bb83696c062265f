"""The scores of a fitted model before its thresholds are subtracted, and these thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from labelweave.array_types import Array
from labelweave.decisions.label_scores import decision_level, label_scores
from labelweave.display.given_labels import last_step

__all__ = ["scores_and_thresholds"]


def scores_and_thresholds(estimator: Any, X: Any, n_labels: int, response: str) -> tuple[Array, Array | None]:
    """Score rows on the scale on which the model compares with its thresholds.

    response: the scores; "auto" prefers the first.
    thresholds (L,): scores above are predicted; None if the model's thresholds are on another scale.
    Shapes: scores (n, L).
    Raises ValueError if the model has no such scores, or an infinite threshold.
    """
    model = last_step(estimator)
    own = getattr(model, "thresholds_", getattr(model, "threshold_", None))
    scores = label_scores(estimator, X, n_labels, response)
    is_decision = response != "predict_proba" and hasattr(model, "decision_function")
    if own is None:
        return scores, np.full(n_labels, decision_level(model, response))
    thresholds = np.broadcast_to(np.asarray(own, dtype=np.float64), (n_labels,))
    if not np.isfinite(thresholds).all():
        raise ValueError(
            f"A threshold of the {type(model).__name__} is infinite: it predicts a label always or never, "
            "wherever the curve is; draw the scores of the estimator inside it with from_predictions."
        )
    if is_decision:
        return scores + thresholds, thresholds
    if _has_log_odds(model):
        return scores, expit(thresholds)
    return scores, thresholds if _compares_probabilities(model) else None


def _has_log_odds(model: Any) -> bool:
    """Whether the model is one of the library's with probabilities, whose thresholds are log-odds."""
    return hasattr(model, "predict_proba") and not hasattr(model, "estimator_")


def _compares_probabilities(model: Any) -> bool:
    """Whether a wrapper compares probabilities with its thresholds."""
    inner = getattr(model, "estimator_", None)
    return inner is not None and decision_level(inner, getattr(model, "response_method", "auto")) > 0
