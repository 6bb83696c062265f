"""Coupled labels by consensus ADMM over partitions, in one process, to compare rounds with travelling labels.

    python -m benchmarks.coupled_consensus --rows 1000 --plans 4x1 4x4 4x16 --rounds 60

With the loss f_p of each partition and weights Z in the metric of R, a round solves in all partitions at once

    min_Z  f_p(Z) + rho / 2 |Z - A_p|^2,

by one round of the ordinary coupled coordinate ascent from the last variables: that is the max-margin problem
with the mean A_p and C / rho.  With V_p = X_p^T B_p R the other steps are

    T_p = (2 - a) W - (1 - a) A_p + a V_p / rho,    W+ = rho sum_p T_p / (1 + P rho),    A_p+ = 2 W+ - T_p,

with the over-relaxation a, ``--relaxation``.  With ``--adaptive`` rho is doubled or halved where one of the
residuals, |Z_p - W+| and rho |W+ - W|, is ten times the other.

All B together are feasible for the dual, whose value and the lower one of the primal values at W and at
sum_p V_p make the gap.  ``benchmarks.travelling_rounds --coupled 1000`` has the other method.  Plans are
partitions x P rho.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.frame import flag, read_options
from benchmarks.travelling_rounds import coupled, load
from labelweave.problems import MarginData
from labelweave.problems.coupled_margins import CoupledMargins
from labelweave.problems.margin_dual import MarginPoint, OrderedRows
from labelweave.solvers.dual_coordinate_ascent import IDLE_GAIN, RUN
from labelweave.solvers.frame import relative_gap

_HOT_SWEEPS, _HOT_GAIN = 4, 0.3


class InOrder(CoupledMargins):
    """Labels in the order of the data, so that slabs of all partitions are of the same labels."""

    def __init__(self, data: MarginData) -> None:
        super().__init__(OrderedRows(data, np.float64), np.float64)

    def _ordered_labels(self) -> Any:
        return np.arange(self.data.labels.n_labels)


def _stacked(point: MarginPoint) -> Any:
    """Put weights and intercepts together: (slabs, d + 1, WIDTH)."""
    return np.concatenate([point.weights, point.intercepts[:, None]], axis=1)


def _set(point: MarginPoint, table: Any) -> None:
    point.weights[:], point.intercepts[:] = table[:, :-1], table[:, -1]


def _round(part: InOrder, point: MarginPoint, generator: Any) -> None:
    runs = np.tile(np.arange(-(-part.n_rows // RUN)), (1 + _HOT_SWEEPS, 1))
    mean = float(point.gains.mean())
    part.round(point, 0, generator.permuted(runs, axis=1), RUN, _HOT_GAIN, IDLE_GAIN, mean)


def gap_of(whole: InOrder, dual: Any, W: Any, inverse: Any) -> float:
    """Measure the gap at dual variables, with the better one of the weights that follow them and W."""
    point = whole.start(dual)
    primal, value = whole.measure(point, 0)
    at_w = replace(point, weights=W[:, :-1], intercepts=W[:, -1])
    hinge = sum(
        whole.sums(*parts)[0].sum()
        for parts in zip(whole.label_blocks, point.beta, at_w.weights, at_w.intercepts, strict=True)
    )
    flat = W.transpose(1, 0, 2).reshape(W.shape[1], -1)[:, : len(inverse)]
    return relative_gap(min(primal, float(((flat @ inverse) * flat).sum() / 2 + hinge)), value)


def _tune(rho: float, parts: Any, points: Any, moved: Any, means: Any, new: Any, last: Any) -> float:
    """Balance the residuals; what local problems hold is scaled along, and the multipliers W+ - A_p."""
    apart = np.sqrt(sum(np.vdot(own / rho + mean - new, own / rho + mean - new) for own, mean in moved))
    step = rho * np.sqrt(len(parts)) * np.linalg.norm(new - last)
    factor = 2.0 if apart > 10 * step else (0.5 if step > 10 * apart else 1.0)
    if factor != 1:
        for part, point, mean in zip(parts, points, means, strict=True):
            part.upper /= factor
            point.beta[:] /= factor
            mean[:] = new - (new - mean) / factor
    return rho * factor


def consensus(data: MarginData, n_parts: int, strength: float, given: argparse.Namespace) -> None:
    """Run, and print the gap every ten rounds."""
    rho, n_rows, over = strength / n_parts, len(data.features), given.relaxation
    pieces = np.array_split(np.random.default_rng(5).permutation(n_rows), n_parts)
    parts = [InOrder(replace(data.rows(rows), upper=data.upper[rows] / rho)) for rows in pieces]
    points, generator = [part.start() for part in parts], np.random.default_rng(0)
    W = 0 * _stacked(points[0])
    means, moved = [W.copy() for _ in parts], [W.copy() for _ in parts]
    whole, inverse = InOrder(data), np.linalg.inv(data.covariance.to_dense())
    for number in range(1, given.rounds + 1):
        before, own_rho = means, rho
        for place, (part, point) in enumerate(zip(parts, points, strict=True)):
            _set(point, means[place] + moved[place] / rho)
            for _ in range(given.sweeps):
                _round(part, point, generator)
            moved[place] = rho * (_stacked(point) - means[place])
        ahead = [
            (2 - over) * W - (1 - over) * mean + over * own / rho
            for mean, own in zip(means, moved, strict=True)
        ]
        last, W = W, rho * sum(ahead) / (1 + n_parts * rho)
        means = [2 * W - own for own in ahead]
        if number % 10 == 0:
            dual = np.empty(data.labels.shape)
            for rows, part, point in zip(pieces, parts, points, strict=True):
                dual[rows] = own_rho * part.dual(point)
            gap = gap_of(whole, dual, W, inverse)
            print(
                f"{n_parts} partitions, P rho = {strength:g}: a gap of {gap:.1e} after {number}, "
                f"P rho = {n_parts * rho:g}",
                flush=True,
            )
            if gap <= given.tol:
                return
        if given.adaptive:
            pairs = list(zip(moved, before, strict=True))
            rho = _tune(rho, parts, points, pairs, means, W, last)


def main() -> None:
    given = read_options(
        __doc__,
        problem="rcv1-subset1",
        rows=1000,
        plans=["4x1", "4x4", "4x16"],
        rounds=60,
        sweeps=flag(1, "of local coordinate ascent a round"),
        relaxation=1.0,
        adaptive=False,
        tol=1e-3,
    )
    data = coupled(load(given.problem), given.rows)
    for plan in given.plans:
        n_parts, strength = plan.split("x")
        consensus(data, int(n_parts), float(strength), given)


if __name__ == "__main__":
    main()
