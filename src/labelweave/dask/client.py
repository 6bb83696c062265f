"""Client-side helpers of fits on a cluster: the connection, inner models, and memory limits of the client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from distributed import Client, get_client

from labelweave.decisions.base import DecisionClassifier
from labelweave.estimators.journal import fit_method
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.config import BUDGET, USUAL_BUDGET


@fit_method
def in_fit(model: Any, solve: Callable[[], Any]) -> Any:
    """Run a solver as ``fit`` does in memory: with its threads, interrupts and progress lines."""
    return solve()


def unfitted(model: Any) -> Any:
    """Return another model with the same parameters, whose random numbers continue from fit to fit."""
    return type(model)(**model.get_params(deep=False))


def innermost(model: Any) -> Any:
    """Return the classifier that reads rows, inside those that decide on its scores."""
    while isinstance(model, DecisionClassifier):
        model = model.estimator
    return model


def connected() -> Client:
    """Return the current client; raise for an asynchronous one."""
    try:
        client = get_client()
    except ValueError:
        raise ValueError(
            "There is no Dask client; create one first, such as distributed.Client() for this machine."
        ) from None
    if client.asynchronous:
        raise ValueError("client is asynchronous; use one with asynchronous=False.")
    return client


def budget_of(model: Any) -> float:
    """Return the memory budget of a model in megabytes."""
    return BUDGET.get("megabytes", getattr(model, "_usual_budget", USUAL_BUDGET))


def budget_words(model: Any) -> str:
    """Return the budget parameter of a model with its value, for a message."""
    return f"`memory_budget` is {budget_of(model):g}"


def refuse_large_tables(
    model: Any, n_rows: int, n_labels: int, bytes_an_entry: float, instead: str
) -> None:  # fmt: skip
    """Raise if rows times labels exceed the client's budget; the message has an alternative."""
    megabytes = 1e-6 * bytes_an_entry * n_rows * n_labels
    if megabytes > budget_of(model):
        raise ParameterError(
            f"Tables of {n_rows} rows x {n_labels} labels take {megabytes:.0f} MB on the client, but "
            f"{budget_words(model)}; raise it, {instead}."
        )
