"""Fits of classifiers that decide on another one's scores: how many there are, and interrupts of any."""

from __future__ import annotations

from typing import Any

from labelweave.decisions import ConformalLabelClassifier
from labelweave.decisions.base import DecisionClassifier

__all__ = ["count_fits", "end_at_interrupts", "unfitted_scorer"]


def end_at_interrupts(estimator: Any) -> Any:
    """Let an interrupt of any fit end a classifier that decides, which needs them all.

    estimator: any that is not fitted; alone it keeps the best model so far.
    """
    if isinstance(estimator, DecisionClassifier):
        scorer = unfitted_scorer(estimator)
        scorer.set_callbacks(*getattr(scorer, "_skl_callbacks", []), _EndAtInterrupts())
    return estimator


def unfitted_scorer(estimator: Any) -> Any:
    """Give the classifier that scores, before a fit.

    estimator: it, or one that decides on its scores.
    Returns the one that takes callbacks.
    """
    while isinstance(estimator, DecisionClassifier):
        estimator = estimator.estimator
    return estimator


def count_fits(estimator: Any) -> int:
    """Count the fits of the classifier that scores.

    estimator: any that is not fitted.
    Returns 1 for one that scores itself; otherwise one a held-out part and one of all rows, times those of
        the estimator inside.
    """
    if not isinstance(estimator, DecisionClassifier):
        return 1
    inside = count_fits(estimator.estimator)
    if isinstance(estimator, ConformalLabelClassifier):  # no fit of all rows
        return inside
    return inside * (1 + (1 if estimator.cv is None else int(estimator.cv)))


class _EndAtInterrupts:
    """Interrupt the whole where a fit ended as interrupted."""

    def setup(self, estimator: Any, context: Any) -> None:
        """Begin a fit."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Begin a task."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """End a task."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """End a fit."""
        ends = (getattr(estimator, name, "") for name in ("status_", "search_status_", "learning_status_"))
        if "interrupted" in ends:
            raise KeyboardInterrupt
