"""What fits on a cluster ask of the client: the connection, the models inside, and what may come there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from distributed import Client, get_client

from labelweave.decisions.base import DecisionClassifier
from labelweave.estimators.progress import fit_method
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.config import BUDGET, USUAL_BUDGET


@fit_method
def in_fit(model: Any, solve: Callable[[], Any]) -> Any:
    """Solve as a ``fit`` in memory does once it has read its rows: with its threads, interrupts and lines."""
    return solve()


def unfitted(model: Any) -> Any:
    """Make another model with the same parameters, whose random numbers go on from one fit to the next."""
    return type(model)(**model.get_params(deep=False))


def innermost(model: Any) -> Any:
    """Return the classifier that reads rows, inside those that decide on its scores."""
    while isinstance(model, DecisionClassifier):
        model = model.estimator
    return model


def connected() -> Client:
    """Return the current client; refuse one that does not wait for results."""
    try:
        client = get_client()
    except ValueError:
        raise ValueError(
            "There is no Dask client; make one first, such as distributed.Client() for this machine."
        ) from None
    if client.asynchronous:
        raise ValueError("client is asynchronous; give one that was made with asynchronous=False.")
    return client


def budget_of(model: Any) -> float:
    """Return the megabytes that a model may take."""
    return BUDGET.get("megabytes", getattr(model, "_usual_budget", USUAL_BUDGET))


def budget_words(model: Any) -> str:
    """Name the budget of a model with its value, for a message."""
    return f"`memory_budget` is {budget_of(model):g}"


def refuse_large_tables(
    model: Any, n_rows: int, n_labels: int, bytes_an_entry: float, instead: str
) -> None:  # fmt: skip
    """Refuse more rows times labels than the client holds; say what to do instead of a larger budget."""
    megabytes = 1e-6 * bytes_an_entry * n_rows * n_labels
    if megabytes > budget_of(model):
        raise ParameterError(
            f"Tables of {n_rows} rows x {n_labels} labels take {megabytes:.0f} MB on the client, but "
            f"{budget_words(model)}; raise it, {instead}."
        )
