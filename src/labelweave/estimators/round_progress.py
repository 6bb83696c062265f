"""Progress of a fit in rounds, through scikit-learn's callbacks."""

from __future__ import annotations

from typing import Any

from labelweave.hyperparameters import SearchRecord
from labelweave.solvers.alternating_minimization import RoundRecord

__all__ = ["RoundProgress"]


class RoundProgress:
    """Report every round, and whatever comes before them, as a subtask.

    max_subtasks: the largest number of subtasks; None if it is not known.
    """

    def __init__(self, estimator: Any, max_subtasks: int | None) -> None:
        self.estimator = estimator
        self.context = estimator._init_callback_context(max_subtasks=max_subtasks)
        self.context.call_on_fit_task_begin(estimator=estimator)

    def __call__(self, record: RoundRecord) -> bool:
        """Note a round; true if a callback asks to stop."""
        return self.subtask("round")

    def on_search(self, record: SearchRecord) -> bool:
        """Note an evaluation of the cross-validation loss.

        record: what there is to note.
        Returns whether a callback asks to stop.
        """
        return self.subtask("cross-validation")

    def subtask(self, name: str) -> bool:
        """Report a subtask as done.

        Returns whether a callback asks to stop.
        """
        subtask = self.context.subcontext(task_name=name)
        subtask.call_on_fit_task_begin(estimator=self.estimator)
        return bool(subtask.call_on_fit_task_end(estimator=self.estimator))

    def close(self) -> None:
        """End the task."""
        self.context.call_on_fit_task_end(estimator=self.estimator)
