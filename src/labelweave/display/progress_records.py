"""What any model's trace tells of its progress, as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from labelweave.array_types import Floats
from labelweave.display.given_labels import last_step

__all__ = ["Progress", "named_models", "read_trace", "trace_of"]


_UPPER = ("primal", "objective")  # what solvers call the value they lower
_ROUNDS = ("iteration", "round")


@dataclass(frozen=True)
class Progress:
    """The records of one fit.

    name: what the legend calls it.
    primal (m,): the objective, to be lowered.
    dual (m,): its lower bound, NaN where the solver has none.
    gap (m,): the relative duality gap or, without a dual, by how much the last round lowered the objective,
        as a share of it.
    Shapes: rounds (m,), seconds (m,).
    """

    name: str
    rounds: Floats
    seconds: Floats
    primal: Floats
    dual: Floats
    gap: Floats

    @property
    def has_dual(self) -> bool:
        """Whether there is a lower bound."""
        return bool(np.isfinite(self.dual).any())


def read_trace(name: str, trace: Sequence[Any]) -> Progress:
    """Read a list of records.

    name: what the legend calls the fit.
    trace: with a round, a time and an objective; a dual value and a gap if there are.
    Raises ValueError if there are no records.
    Raises TypeError if they lack an objective.
    """
    records = list(trace)
    if not records:
        raise ValueError(
            f"The trace of {name} is empty, so there is no progress to draw; give a model that is fitted in "
            "rounds."
        )
    if not any(hasattr(records[0], field) for field in _UPPER):
        raise TypeError(
            f"The trace of {name} has records of type {type(records[0]).__name__} without an objective; give "
            "the trace_ of a fitted model."
        )
    rounds, primal = _column(records, *_ROUNDS), _column(records, *_UPPER)
    gap = _column(records, "decrease", "gap")
    return Progress(name, rounds, _column(records, "time"), primal, _column(records, "dual"), gap)


def trace_of(name: str, estimator: Any) -> Progress:
    """Read the trace of a fitted model.

    name: what the legend calls it.
    estimator: fitted, with a ``trace_``, or a wrapper of such a one.
    Raises NotFittedError if the model is not fitted.
    Raises TypeError if it has no trace.
    """
    model = last_step(estimator)
    check_is_fitted(model)
    for holder in (model, last_step(getattr(model, "estimator_", None))):
        if hasattr(holder, "trace_"):
            return read_trace(name, holder.trace_)
    raise TypeError(
        f"{type(model).__name__} has no trace_ to draw; give one of the library's models that are fitted in "
        "rounds."
    )


def named_models(models: Any) -> dict[str, Any]:
    """Name models: by the keys of a mapping, else by their classes.

    Returns the models; a second one of a class has a number after its name.
    """
    if isinstance(models, Mapping):
        return {str(name): model for name, model in models.items()}
    named = dict[str, Any]()
    for model in models if isinstance(models, (list, tuple)) else [models]:
        name = type(last_step(model)).__name__
        same = sum(other.split(" ")[0] == name for other in named)
        named[f"{name} {same + 1}" if same else name] = model
    return named


def _column(records: Sequence[Any], *fields: str) -> Floats:
    """Take the first of some fields that the records have, else NaN."""
    for field in fields:
        if hasattr(records[0], field):
            return np.asarray([getattr(record, field) for record in records], dtype=np.float64)
    return np.full(len(records), np.nan)
