"""Progress of a fit that first learns hyper-parameters, through scikit-learn's callbacks."""

from __future__ import annotations

from typing import Any

from labelweave.estimators.base import GapProgress
from labelweave.hyperparameters import SearchRecord
from labelweave.solvers import TraceRecord

__all__ = ["LikelihoodProgress"]


class LikelihoodProgress:
    """Report evaluations of the cross-validation loss, then the duality gap of the final fit.

    tol: the gap at which the fit is done.
    learning_iterations: the largest number of evaluations; 0 for none.
    has_part: whether a fit of a part of the rows comes before the final one.
    """

    def __init__(
        self, estimator: Any, tol: float, learning_iterations: int, *, has_part: bool = False
    ) -> None:
        self.estimator, self.evaluations = estimator, learning_iterations
        self.gap = GapProgress(estimator, tol, extra_steps=learning_iterations, has_part=has_part)
        self.done = 0

    def on_search(self, record: SearchRecord) -> bool:
        """Note an evaluation.

        record: what there is to note.
        Returns whether a callback asks to stop.
        """
        if self.done >= self.evaluations:
            return False
        self.done += 1
        return self.gap.subtask("cross-validation")

    def on_check(self, record: TraceRecord) -> bool:
        """Note a check of the gap.

        record: what there is to note.
        Returns whether a callback asks to stop.
        """
        while self.done < self.evaluations:  # the search ended early
            self.done += 1
            self.gap.subtask("cross-validation")
        return self.gap(record)

    def end_part(self) -> None:
        """Go on to the fit of all rows."""
        self.gap.end_part()

    def close(self) -> None:
        """End the task."""
        self.gap.close()
