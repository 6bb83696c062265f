"""Rounds and seconds of the processor that a travelling block of labels takes, in one process, without Dask.

    python -m benchmarks.travelling_rounds --blocks 0 2 --plans 2x16 4x32 16x32
    python -m benchmarks.travelling_rounds --problem rcv1-subset1 --coupled 3000 --plans 4x16x1x1 4x32x2x1.25
    python -m benchmarks.travelling_rounds --problem yeast --C 0.1 --blocks 0 --plans 4x16

Plans are partitions x visits a round, and for coupled labels x places at once x caution; the last two are
as in fits where they are left out, and 4x4x4x4 is CoCoA+.  The way of a round is the sum over its turns of
the longest visit: what a round takes on a worker a place, if messages took nothing.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.frame import flag, read_options
from benchmarks.needed_data import needs_data
from benchmarks.problems import DEFAULT_DATA, load_problem
from labelweave.dask.graphs import order_of_round, turns_of_round
from labelweave.datasets import read_any
from labelweave.features import FeatureMatrix
from labelweave.labels import LabelCovariance, LabelMatrix
from labelweave.problems import MarginData, travelling_margins
from labelweave.problems.coupled_margins import CoupledMargins
from labelweave.problems.margin_dual import OrderedRows
from labelweave.problems.travelling_margins import (
    Piece,
    RowsBlock,
    TravellingBlock,
    TravellingLabels,
    block_objectives,
    brought_together,
    end_of_round,
    in_tree_order,
)
from labelweave.solvers import DualCoordinateAscent
from labelweave.solvers.frame import relative_gap

_MOST_ROUNDS = 150


def load(name: str) -> MarginData:
    """Load a problem, with upper bounds of C = 1."""
    if name == "yeast":
        read = read_any(DEFAULT_DATA / "mulan" / "yeast" / "yeast-train.arff")
        X, labels = read.X, LabelMatrix.from_any(read.Y)
    else:
        X, Y = load_problem(name)
        labels = LabelMatrix.from_any(Y)
    identity, margins = LabelCovariance.identity(labels.n_labels), np.ones((2, labels.n_labels))
    return MarginData(FeatureMatrix(X), labels, identity, np.full(len(labels), 2.0), margins, intercept=True)


def travel(data: MarginData, labels: Any, plan: str, tol: float) -> tuple[int, float, float, float]:
    """Let a block travel to a gap.

    Returns: rounds, seconds of the processor of all visits and of those on the way, and the gap.
    """
    n_parts, n_visits, *more = plan.split("x")
    is_coupled = not data.covariance.is_diagonal
    if more:
        travelling_margins.ABREAST, travelling_margins._CAUTION = int(more[0]), float(more[1])
    order = np.random.default_rng(5).permutation(len(data.features))
    pieces = np.array_split(order, int(n_parts))
    kind = TravellingLabels if is_coupled else TravellingBlock
    parts = [kind(OrderedRows(data.rows(np.sort(rows)), np.float32), labels) for rows in pieces]
    covariance = data.covariance.columns(labels).to_dense() if is_coupled else None
    counts = [max(1, round(int(n_visits) / len(parts)))] * len(parts)
    traveller, seats = parts[0].first_traveller(), [part.first_seat() for part in parts]
    seconds, way, gap, number = 0.0, 0.0, np.inf, 0
    while gap > tol and number < _MOST_ROUNDS:
        is_full, done = number < 2 or number % 3 == 0, [0] * len(parts)
        turns = [[at] for at in order_of_round(0, number, 0, counts)]
        if is_coupled and travelling_margins.ABREAST > 1:
            turns = turns_of_round(0, number, counts, travelling_margins.ABREAST)
        for turn in turns:
            came, taken = [], []
            for at in turn:
                begun = time.process_time()
                piece = Piece(done[at], counts[at], np.random.default_rng([number, at]))
                moved, seats[at] = parts[at].visit(traveller, seats[at], piece, is_full=is_full)
                done[at] += 1
                came.append(moved)
                taken.append(time.process_time() - begun)
            traveller = brought_together(traveller, came) if is_coupled else came[0]
            seconds, way = seconds + sum(taken), way + max(taken)
        traveller = end_of_round(traveller, was_full=is_full, intercept=data.intercept, covariance=covariance)
        found = [part.sums_in_use(seat, traveller) for part, seat in zip(parts, seats, strict=True)]
        sums, totals = in_tree_order(found), traveller.moves.totals
        values = block_objectives(traveller, sums, totals, intercept=data.intercept, covariance=covariance)
        gap, number = relative_gap(*values), number + 1
    return number, seconds, way, gap


def coupled(data: MarginData, n_rows: int) -> MarginData:
    """Take some rows, with a covariance of labels that their correlations make."""
    data = data.rows(np.random.default_rng(0).permutation(len(data.features))[:n_rows])
    return replace(data, covariance=LabelCovariance.from_labels(data.labels))


@needs_data
def main() -> None:
    given = read_options(
        __doc__,
        problem="rcv1",
        blocks=[0, 2],
        plans=["1x1", "2x2", "2x16", "4x32", "16x16", "16x32"],
        coupled=flag(help="so many rows, with all labels coupled", type=int),
        without_intercept=False,
        C=1.0,
        tol=1e-3,
    )
    data = replace(load(given.problem), intercept=not given.without_intercept)
    data = replace(data, upper=given.C * data.upper)
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
            rounds, seconds, way, gap = travel(data, labels, plan, given.tol)
            print(
                f"block {block}, {plan}: a gap of {gap:.1e} in {rounds} rounds, visits {seconds:.2f} s, "
                f"the way {way:.2f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
