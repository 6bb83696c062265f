"""The loss of a low-rank model whose rows are partitions on a cluster.

Scores of a partition's rows are computed where its features are: the loss gets the features' factor itself,
and tables with one entry per row never leave the workers.  A factor, or a direction, goes there; results
are summed over rows in pairs, in the order of the partitions.  Data that workers keep for a point
(derivatives, curvatures) are recomputed if they are lost with a worker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
from distributed import Future

import dask
from labelweave.dask.graphs import in_pairs
from labelweave.dask.parts import Kept, Parts
from labelweave.dask.rows import Sized, aligned
from labelweave.dask.waiting import scattered
from labelweave.features.factor_maps import FactorMap
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers
from labelweave.foundation.arrays.tables import WeighedColumns
from labelweave.problems.label_entries import LabelEntries
from labelweave.problems.label_entries.any_loss import BUDGET
from labelweave.problems.label_entries.base import EntryPoint, GradientOperator
from labelweave.problems.low_rank_factors import RowsLoss


class PartOfLoss(Sized):
    """The features of neighboring partitions as a map, and the loss of their rows."""

    def __init__(self, mapped: Any, loss: RowsLoss, budget: float) -> None:
        with Workers().running():
            self.map: FactorMap = mapped.map
            self.entries = loss.entries(Workers(), budget)


@dataclass(frozen=True)
class Facts:
    """The client's summary of the loss of all rows.

    columns (L,): sums of the weights of columns; rows: of those of rows.
    is_quadratic, is_uniform: properties of the loss, and of its curvature from both sides.
    least: below this the losses decrease only by rounding.
    """

    columns: Array
    rows: float
    least: float
    is_quadratic: bool
    is_uniform: tuple[bool, bool]

    @classmethod
    def of(cls, part: PartOfLoss) -> Facts:
        entries, turned = part.entries, part.entries.transposed
        uniform = entries.has_uniform_curvature, turned.has_uniform_curvature
        return cls(entries.column_weights, _total(turned), entries.least, entries.is_quadratic, uniform)

    def __add__(self, other: Facts) -> Facts:
        uniform = tuple(map(min, self.is_uniform, other.is_uniform))
        quadratic = self.is_quadratic and other.is_quadratic
        sums = self.columns + other.columns, self.rows + other.rows, self.least + other.least
        return Facts(*sums, quadratic, (uniform[0], uniform[1]))


class Sums(Sized):
    """Tables that are summed over the parts."""

    def __init__(self, *tables: Array) -> None:
        self.tables = tables

    def __add__(self, other: Sums) -> Sums:
        return Sums(*map(np.add, self.tables, other.tables))


class EntriesApart(WeighedColumns):
    """The loss; its image is the features' factor (m, k), and the labels' factor (L, k) is fixed.

    parts: the features, as maps of neighboring partitions.
    """

    def __init__(self, parts: Parts, loss: RowsLoss, width: int) -> None:
        self._parts, self._loss = parts, loss
        self._own = Kept(self._make_own)
        self.facts: Facts = self._summed(Facts.of)
        self.is_quadratic, self.has_uniform_curvature = self.facts.is_quadratic, self.facts.is_uniform[0]
        self.shape, self.column_weights = (width, loss.labels.n_labels), self.facts.columns
        self.least = self.facts.least
        self.transposed = TurnedEntriesApart(self)

    def _make_own(self) -> list[Future]:
        client, budget = self._parts.client, BUDGET / len(self._parts.futures)
        losses = scattered(client, [self._loss.rows(rows) for rows in self._parts.slices])
        pairs = zip(self._parts.futures, losses, strict=True)
        return [client.submit(PartOfLoss, *pair, budget, pure=False) for pair in pairs]

    def keep(self, of_part: Callable[..., Any], *tables: Array) -> Kept:
        """Keep on workers a function of every part and of tables."""

        def make() -> list[Future]:
            client, sent = self._parts.client, self._sent(tables)
            return [client.submit(of_part, part, *sent, pure=False) for part in self._own.futures()]

        return Kept(make)

    def _sent(self, tables: Sequence[Array]) -> list[Any]:
        return scattered(self._parts.client, tables)

    def _summed(self, of_part: Callable[..., Any], *tables: Array, kept: Kept | None = None) -> Any:
        """Sum a function of every part, of what workers keep of it and of tables, in pairs."""
        attempts = count()

        def send() -> list[Future]:
            is_lost = next(attempts) > 0
            lists = [one.futures(is_lost=is_lost) for one in (self._own, kept) if one is not None]
            sent, called = self._sent(tables), dask.delayed(of_part, pure=False)
            found = [called(*futures, *sent) for futures in zip(*lists, strict=True)]
            total = in_pairs(found, f"sum-{dask.base.tokenize(object())}")
            return list(self._parts.client.compute([total], optimize_graph=False))

        return self._parts.done(send)[0]

    def point(self, *factors: Array, is_turned: bool, total: float) -> EntryPoint:
        """Evaluate the loss to second order; the moving factor comes first.

        total: the sum of the weights of columns.
        """
        of_part = dask.delayed(partial(_point, is_turned=is_turned), pure=False)

        def evaluated(is_lost: bool) -> list[Future]:
            own, sent = self._own.futures(is_lost=is_lost), self._sent(factors)
            points = [of_part(part, *sent) for part in own]
            sums = in_pairs([point[0] for point in points], f"sum-{dask.base.tokenize(object())}")
            wanted = [sums, *(point[1] for point in points)]  # partial sums are not kept
            return list(self._parts.client.compute(wanted, optimize_graph=False))

        curves, attempts = Kept(lambda: evaluated(False)[1:]), count()

        def send() -> list[Future]:
            made = evaluated(next(attempts) > 0)
            curves.hold(made[1:])
            return made[:1]

        values, gradients, weights = self._parts.done(send)[0].tables

        def curve(direction: Array) -> Array:
            bend = partial(_bent, is_turned=is_turned)
            return np.asarray(self._summed(bend, direction, kept=curves))

        return EntryPoint(values, gradients, curve, (weights / total).astype(gradients.dtype))

    def losses(self, *factors: Array, is_turned: bool) -> npt.NDArray[np.float64]:
        """Compute the losses: of all rows together, or per label."""
        return np.asarray(self._summed(partial(_values, is_turned=is_turned), *factors))

    def gram_of(self, of_image: str, factor: Array) -> npt.NDArray[np.float64]:
        """Call ``gram`` or ``spread`` of the entries, with the rows' scores seen from the labels' side."""
        return np.asarray(self._summed(partial(_gram, of_image=of_image), factor))

    def at(self, image: Array, fixed: Array) -> EntryPoint:
        return self.point(image, fixed, is_turned=False, total=max(float(self.column_weights.sum()), 1e-30))

    def values(self, image: Array, fixed: Array) -> npt.NDArray[np.float64]:
        return self.losses(image, fixed, is_turned=False)

    def gradient_operator(self, image: Array, fixed: Array) -> GradientOperator:
        operators = self.keep(_operator, image, fixed)
        return GradientOperator(
            lambda right: np.asarray(self._summed(_product, right, kept=operators)),
            lambda left: np.asarray(self._summed(_adjoint_product, left, kept=operators)),
            lambda share: float(self._summed(_conjugate, np.array(share), kept=operators)),
        )


class TurnedEntriesApart:
    """The same loss from the labels' side: their factor (L, k) moves, and the features' (m, k) is fixed."""

    def __init__(self, entries: EntriesApart) -> None:
        self.transposed, self.shape = entries, entries.shape[::-1]
        self.is_quadratic, self.has_uniform_curvature = entries.is_quadratic, entries.facts.is_uniform[1]
        self.column_weights: Array = np.array([entries.facts.rows])
        self.least, self.takes_single = entries.least, False

    def gram(self, fixed: Array, _: Workers) -> npt.NDArray[np.float64]:
        return self.transposed.gram_of("gram", fixed)

    def spread(self, fixed: Array, _: Workers) -> npt.NDArray[np.float64]:
        return self.transposed.gram_of("spread", fixed)

    def at(self, image: Array, fixed: Array) -> EntryPoint:
        return self.transposed.point(
            image, fixed, is_turned=True, total=max(self.transposed.facts.rows, 1e-30)
        )

    def values(self, image: Array, fixed: Array) -> npt.NDArray[np.float64]:
        return self.transposed.losses(image, fixed, is_turned=True)

    def gradient_operator(self, image: Array, fixed: Array) -> GradientOperator:
        found = self.transposed.gradient_operator(fixed, image)
        return GradientOperator(found.adjoint, found.matmul, found.conjugate)


def _total(entries: LabelEntries) -> float:
    return float(entries.column_weights.sum(dtype=np.float64))


def _seen(
    part: PartOfLoss, moving: Array, fixed: Array, *, is_turned: bool
) -> tuple[LabelEntries, Array, Array]:
    """Return the entries of a part, and both factors as the entries use them."""
    moving, fixed = aligned(moving), aligned(fixed)
    if is_turned:
        return part.entries.transposed, moving, part.map.image(fixed)
    return part.entries, part.map.image(moving), fixed


def _point(part: PartOfLoss, *factors: Array, is_turned: bool) -> tuple[Sums, Callable[[Array], Array]]:
    with Workers().running():
        entries, image, fixed = _seen(part, *factors, is_turned=is_turned)
        found = entries.at(image, fixed)
        weights = found.weights * _total(entries)
        if is_turned:
            return Sums(found.values, found.gradients, weights), found.curve
        gradient, squares = part.map.gradient(found.gradients), part.map.squares(weights)[:, 0]
        return Sums(found.values.sum(keepdims=True), gradient, squares), found.curve


def _bent(part: PartOfLoss, curve: Callable[[Array], Array], direction: Array, *, is_turned: bool) -> Array:
    direction = aligned(direction)
    with Workers().running():
        if is_turned:
            return np.asarray(curve(direction))
        return part.map.gradient(curve(part.map.image(direction)))


def _values(part: PartOfLoss, *factors: Array, is_turned: bool) -> Array:
    with Workers().running():
        entries, image, fixed = _seen(part, *factors, is_turned=is_turned)
        found = entries.values(image, fixed)
        return found if is_turned else found.sum(keepdims=True)


def _gram(part: PartOfLoss, factor: Array, *, of_image: str) -> Array:
    workers = Workers()
    with workers.running():
        image = part.map.image(aligned(factor))
        return np.asarray(getattr(part.entries.transposed, of_image)(image, workers))


def _operator(part: PartOfLoss, *factors: Array) -> GradientOperator:
    with Workers().running():
        entries, image, fixed = _seen(part, *factors, is_turned=False)
        return entries.gradient_operator(image, fixed)


def _product(part: PartOfLoss, operator: GradientOperator, right: Array) -> Array:
    with Workers().running():
        return part.map.gradient(operator.matmul(aligned(right)))


def _adjoint_product(part: PartOfLoss, operator: GradientOperator, left: Array) -> Array:
    with Workers().running():
        return operator.adjoint(part.map.image(aligned(left)))


def _conjugate(_: PartOfLoss, operator: GradientOperator, share: Array) -> float:
    with Workers().running():
        return operator.conjugate(float(share))
