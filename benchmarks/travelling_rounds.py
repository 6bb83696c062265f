"""Rounds and seconds of the processor that a travelling block of labels takes, in one process, without Dask.

python -m benchmarks.travelling_rounds --blocks 0 2 --plans 2x16 4x32 16x32
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.problems import load_problem
from labelweave.dask.graphs import order_of_round
from labelweave.features import FeatureMatrix
from labelweave.labels import LabelCovariance, LabelMatrix
from labelweave.problems import MarginData
from labelweave.problems.coupled_margins import CoupledMargins
from labelweave.problems.margin_dual import OrderedRows
from labelweave.problems.travelling_margins import (
    Piece,
    RowsBlock,
    TravellingBlock,
    TravellingLabels,
    block_objectives,
    end_of_round,
    in_tree_order,
)
from labelweave.solvers import DualCoordinateAscent
from labelweave.solvers.frame import relative_gap


def load(name: str) -> MarginData:
    """Load a problem, with C = 1."""
    X, Y = load_problem(name)
    labels = LabelMatrix.from_any(Y)
    identity, margins = LabelCovariance.identity(labels.n_labels), np.ones((2, labels.n_labels))
    return MarginData(FeatureMatrix(X), labels, identity, np.full(len(labels), 2.0), margins, intercept=True)


def travel(data: MarginData, labels: Any, n_parts: int, n_visits: int, tol: float) -> tuple[int, float]:
    """Let a block travel to a gap; give its rounds and seconds of the processor."""
    order = np.random.default_rng(5).permutation(len(data.features))
    pieces = np.array_split(order, n_parts)
    is_coupled = not data.covariance.is_diagonal
    kind = TravellingLabels if is_coupled else TravellingBlock
    parts = [kind(OrderedRows(data.rows(np.sort(rows)), np.float32), labels) for rows in pieces]
    covariance = data.covariance.columns(labels).to_dense() if is_coupled else None
    counts = [max(1, round(n_visits / n_parts))] * n_parts
    traveller, seats = parts[0].first_traveller(), [part.first_seat() for part in parts]
    seconds, gap, number = 0.0, np.inf, 0
    while gap > tol and number < 500:
        is_full, done = number < 2 or number % 3 == 0, [0] * n_parts
        begun = time.process_time()
        for at in order_of_round(0, number, 0, counts):
            piece = Piece(done[at], counts[at], np.random.default_rng([number, at]))
            traveller, seats[at] = parts[at].visit(traveller, seats[at], piece, is_full=is_full)
            done[at] += 1
        traveller = end_of_round(traveller, was_full=is_full, intercept=True, covariance=covariance)
        seconds += time.process_time() - begun
        found = [part.sums_in_use(seat, traveller) for part, seat in zip(parts, seats, strict=True)]
        sums, totals = in_tree_order(found), traveller.moves.totals
        values = block_objectives(traveller, sums, totals, intercept=True, covariance=covariance)
        gap, number = relative_gap(*values), number + 1
    return number, seconds


def coupled(data: MarginData, n_rows: int) -> MarginData:
    """Take some rows, with a covariance of labels that their correlations make."""
    data = data.rows(np.random.default_rng(0).permutation(len(data.features))[:n_rows])
    return replace(data, covariance=LabelCovariance.from_labels(data.labels))


def main() -> None:
    """Measure every plan, partitions x visits, beside the ordinary algorithm."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--problem", default="rcv1")
    parser.add_argument("--blocks", type=int, nargs="+", default=[0, 2])
    parser.add_argument("--plans", nargs="+", default=["1x1", "2x2", "2x16", "4x32", "16x16", "16x32"])
    parser.add_argument("--coupled", type=int, help="so many rows, with all labels coupled")
    parser.add_argument("--tol", type=float, default=1e-3)
    given = parser.parse_args()
    data = load(given.problem)
    if given.coupled:
        data = coupled(data, given.coupled)
    order = np.argsort(-data.labels.positive_counts(), kind="stable")
    for block in [0] if given.coupled else given.blocks:
        labels = order if given.coupled else order[16 * block : 16 * block + 16]
        rows, solver = OrderedRows(data, np.float32), DualCoordinateAscent(given.tol, 500)
        whole = CoupledMargins(rows, np.float32) if given.coupled else RowsBlock(rows, labels)
        DualCoordinateAscent(1.0, 2).solve(whole, solver.start(whole))  # loops are compiled
        begun = time.process_time()
        result, _ = solver.solve(whole, solver.start(whole))
        print(
            f"block {block}, ordinary: {result.n_iter} rounds, {time.process_time() - begun:.2f} s",
            flush=True,
        )
        for plan in given.plans:
            rounds, seconds = travel(data, labels, *map(int, plan.split("x")), given.tol)
            print(f"block {block}, {plan}: {rounds} rounds, {seconds:.2f} s", flush=True)


if __name__ == "__main__":
    main()
