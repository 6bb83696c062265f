"""Progress of a fit in rounds, through scikit-learn's callbacks."""

from __future__ import annotations

from typing import Any

from labelweave.solvers.alternating_minimization import RoundRecord

__all__ = ["RoundProgress"]


class RoundProgress:
    """Report every round as a subtask.

    Parameters
    ----------
    estimator : estimator
        The estimator being fitted.
    max_rounds : int
        The largest number of rounds.
    """

    def __init__(self, estimator: Any, max_rounds: int) -> None:
        self.estimator = estimator
        self.context = estimator._init_callback_context(max_subtasks=max_rounds)
        self.context.call_on_fit_task_begin(estimator=estimator)

    def __call__(self, record: RoundRecord) -> bool:
        """Note a round; true if a callback asks to stop."""
        subtask = self.context.subcontext(task_name="round")
        subtask.call_on_fit_task_begin(estimator=self.estimator)
        return bool(subtask.call_on_fit_task_end(estimator=self.estimator))

    def close(self) -> None:
        """End the task."""
        self.context.call_on_fit_task_end(estimator=self.estimator)
