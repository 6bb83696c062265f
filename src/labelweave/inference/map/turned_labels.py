"""Max-marginals where no elimination order gives them: the example is solved again with each label turned."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from labelweave._loops.map.arrays import MapPlan, MapWorkspace
from labelweave._loops.map.solve import solve_rows
from labelweave.array_types import Array, PerLabel

__all__ = ["searched_labels", "write_turned_margins"]


def searched_labels(plan: MapPlan) -> npt.NDArray[np.int64]:
    """List the labels of components that have no elimination order."""
    is_searched = np.diff(plan.components.bucket_starts) == 0
    return np.compress(np.repeat(is_searched, np.diff(plan.components.starts)), plan.components.labels)


def write_turned_margins(
    plan: MapPlan, workspace: MapWorkspace, unary: PerLabel, tables: Array, clamp: PerLabel, margins: PerLabel
) -> None:
    """Write the max-marginal differences of one example for its labels without an order.

    clamp: -1 for labels that are free.
    margins: its entries for these labels that are free are written.
    Shapes: tables (T,).
    """
    labels = searched_labels(plan)
    labels = labels[clamp[labels] < 0]
    # the first row is the example itself
    held = np.repeat(clamp[None], len(labels) + 1, axis=0)
    own = np.repeat(unary[None], len(held), axis=0)
    found, values, bounds = np.zeros(own.shape, np.int8), np.zeros(len(own)), np.zeros(len(own))
    solve_rows(plan, workspace, 0, 1, own, tables[None], held, found, values, bounds)
    best = found[0, labels]
    held[np.arange(1, len(held)), labels] = 1 - best
    solve_rows(plan, workspace, 1, len(own), own, tables[None], held, found, values, bounds)
    margins[labels] = np.where(best, 1.0, -1.0) * np.maximum(0.0, values[0] - values[1:])
