"""The scores and clamps of a batch, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Floats
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.labels.label_matrix import shown_name

__all__ = ["checked_clamp", "checked_costs", "checked_scores"]


def checked_scores(graph: CliqueGraph, unary: Any, tables: Any) -> tuple[Floats, Floats]:
    """Check the scores of labels and cliques.

    unary (n, L): score of 1 less score of 0.
    tables (T,): scores of all states of all cliques, the same for all rows or a row each.
    Shapes: unary (n, L), tables (1, T).
    Raises ValueError if a shape is wrong or a score is not finite.
    """
    own, n_entries = np.ascontiguousarray(unary, np.float64), int(graph.table_starts[-1])
    if own.ndim != 2 or own.shape[1] != graph.n_labels:
        raise ValueError(
            f"unary has shape {own.shape}; it must be (rows, {graph.n_labels}), a column a label."
        )
    shared = np.ascontiguousarray(tables, np.float64)
    if shared.shape not in ((n_entries,), (len(own), n_entries)):
        raise ValueError(
            f"tables has shape {shared.shape}; the cliques have {n_entries} states together, so it must be "
            f"({n_entries},), or ({len(own)}, {n_entries}) with a row for each example."
        )
    shared = shared if shared.ndim == 2 else shared[None]
    _refuse_infinite(own, "unary", graph)
    _refuse_infinite(shared, "tables", None)
    return own, shared


def _refuse_infinite(scores: Floats, name: str, graph: CliqueGraph | None) -> None:
    if not np.isfinite(scores).all():
        row, column = np.argwhere(~np.isfinite(scores))[0]
        place = f"entry {column}" if graph is None else f"label {shown_name(graph.label_names, column)}"
        raise ValueError(
            f"{name} at row {row}, {place} is {scores[row, column]}; scores are finite. To forbid or force a "
            "label use clamp."
        )


def checked_clamp(graph: CliqueGraph, clamp: Any | None, n_rows: int) -> npt.NDArray[np.int8]:
    """Check which labels are held.

    clamp (L,): -1 where a label is free, else its value.
    n_rows: the number of rows n.
    Shapes: result (1, L).
    Raises ValueError if the shape is wrong or an entry is something else.
    """
    if clamp is None:
        return np.full((1, graph.n_labels), -1, np.int8)
    held = np.atleast_2d(np.asarray(clamp))
    if held.shape not in ((1, graph.n_labels), (n_rows, graph.n_labels)):
        raise ValueError(
            f"clamp has shape {np.shape(clamp)}; it must be ({graph.n_labels},), or ({n_rows}, "
            f"{graph.n_labels}) with a row for each example."
        )
    bad = ~np.isin(held, (-1, 0, 1))
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(
            f"clamp at row {row}, label {shown_name(graph.label_names, column)} is {held[row, column]}; it "
            "is 0 or 1 for a label that is held and -1 for one that is free."
        )
    return np.ascontiguousarray(held, np.int8)


def checked_costs(costs: Any, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Check the costs of errors.

    costs: the costs of a 1 in place of a 0, and of a 0 in place of a 1.
    shape: rows and labels, (n, L).
    Shapes: result (n, L).
    Raises ValueError if they are no pair, a shape is wrong or an entry is not finite.
    """
    if not isinstance(costs, (tuple, list)) or len(costs) != 2:
        raise ValueError(
            f"costs is {costs!r}; give a pair: the costs of a 1 in place of a 0, and of a 0 in place of a 1."
        )
    false_positive, false_negative = (_written_out(cost, shape) for cost in costs)
    return false_positive, false_negative


def _written_out(costs: Any, shape: tuple[int, ...]) -> Floats:
    given = np.asarray(costs, np.float64)
    if not np.isfinite(given).all():
        raise ValueError("costs has an entry that is not finite; give finite costs of errors.")
    try:
        return np.broadcast_to(given, shape)
    except ValueError:
        raise ValueError(
            f"costs has an entry of shape {given.shape}; give one number, {shape[1]} for the labels, or "
            f"{shape[0]} x {shape[1]} for rows and labels."
        ) from None
