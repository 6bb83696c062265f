"""What a comparison found: values of every model on every fold, means, and paired differences.

Folds share training rows, so that values on them are not independent and the usual standard error is too
small.  Intervals take the corrected variance of Nadeau and Bengio, "Inference for the generalization error",
Machine Learning 52, 2003: ``(1 / k + n_test / n_train) s^2`` for k folds, with k - 1 degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from labelweave.foundation.array_types import Floats

_WIDTH = 79


@dataclass(frozen=True)
class Difference:
    """A metric of one model less that of the reference, on the same folds.

    mean: the mean over the folds.
    low, high: the interval; NaN with a single fold.
    """

    mean: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class Comparison:
    """Values of every model on every fold.

    values (folds,): by model, by metric; NaN where a model does not have the metric.
    test_share: rows tested on by rows learned from, mean over the folds.
    reference: the model with which others are compared.
    """

    values: dict[str, dict[str, Floats]]
    test_share: float
    reference: str

    @property
    def models(self) -> list[str]:
        return list(self.values)

    @property
    def metrics(self) -> list[str]:
        """The metrics' names, "fit_seconds", "predict_seconds" and "megabytes" last."""
        return list(self.values[self.reference])

    def means(self) -> dict[str, dict[str, float]]:
        return {
            model: {metric: float(np.mean(folds)) for metric, folds in rows.items()}
            for model, rows in self.values.items()
        }

    def difference(
        self, model: str, metric: str, reference: str | None = None, level: float = 0.95
    ) -> Difference:
        """Compare two models fold by fold.

        reference: the other model; by default the comparison's.
        level: the level of the interval.
        Returns mean and interval of the model's value less the other's.
        Raises KeyError if a model or metric is unknown.
        Raises ValueError if the level is not between 0 and 1.
        """
        other = self.reference if reference is None else reference
        return self._around_mean(self.values[model][metric] - self.values[other][metric], level)

    def interval(self, model: str, metric: str, level: float = 0.95) -> Difference:
        """Return the mean of a metric over the folds with its interval, as :meth:`difference` does."""
        return self._around_mean(self.values[model][metric], level)

    def _around_mean(self, values: Floats, level: float) -> Difference:
        if not 0 < level < 1:
            raise ValueError(f"level is {level}; it needs to be between 0 and 1, as 0.95 is.")
        mean = float(np.mean(values))
        if len(values) < 2 or not np.isfinite(values).all():
            return Difference(mean, float("nan"), float("nan"))
        spread = np.sqrt((1.0 / len(values) + self.test_share) * values.var(ddof=1))
        half = float(student.ppf(0.5 + 0.5 * level, len(values) - 1) * spread)
        return Difference(mean, mean - half, mean + half)

    def differences(self, reference: str | None = None) -> dict[str, dict[str, Difference]]:
        """Compare all models with one.

        reference: the model to compare with; by default the comparison's.
        Returns by model, by metric; without the reference itself.
        """
        other = self.reference if reference is None else reference
        return {
            model: {metric: self.difference(model, metric, other) for metric in self.metrics}
            for model in self.models if model != other
        }  # fmt: skip

    def to_frame(self) -> Any:
        """Return a frame of one row a metric: for every model the mean, and difference and interval.

        Returns columns (model, "mean"), and for all but the reference (model, "difference"), (model, "low")
            and (model, "high").
        """
        import pandas as pd

        columns, differences = {}, self.differences()
        for model, means in self.means().items():
            columns[model, "mean"] = list(means.values())
            found = differences.get(model, {}).values()
            for name in ("difference", "low", "high") if found else ():
                part = "mean" if name == "difference" else name
                columns[model, name] = [getattr(one, part) for one in found]
        return pd.DataFrame(columns, index=pd.Index(self.metrics, name="metric"))

    def __repr__(self) -> str:
        means = self.means()
        first, *others = [["metric", *self.metrics]] + [
            [model, *(self._cell(model, name, means) for name in self.metrics)] for model in self.models
        ]
        lines = []
        for columns in _side_by_side(others, _WIDTH - max(map(len, first))):
            shown = [_padded(first, "<"), *(_padded(column, ">") for column in columns)]
            lines += [*("  ".join(cells) for cells in zip(*shown, strict=True)), ""]
        folds = len(self.values[self.reference][self.metrics[0]])
        where = "on a single fold" if folds == 1 else f"mean over {folds} folds"
        if folds > 1 and len(self.models) > 1:
            where += (
                f";\nin brackets the 95 % interval of the difference to\n{self.reference}, * where it "
                "leaves out 0"
            )
        lines.append(where)
        return "\n".join(lines)

    def _cell(self, model: str, metric: str, means: dict[str, dict[str, float]]) -> str:
        value = f"{means[model][metric]:.4g}"
        if model == self.reference:
            return value
        found = self.difference(model, metric)
        if np.isnan(found.low):
            return value
        return f"{value} [{found.low:+.2g}, {found.high:+.2g}]{'*' if found.is_clear else ' '}"


def _padded(cells: list[str], side: str) -> list[str]:
    width = max(map(len, cells))
    return [f"{cell:{side}{width}}" for cell in cells]


def _side_by_side(columns: list[list[str]], width: int) -> Iterator[list[list[str]]]:
    """Divide columns into tables that are as wide; a wider column has one of its own."""
    part, left = list[list[str]](), width
    for column in columns:
        own = 2 + max(map(len, column))
        if part and own > left:
            yield part
            part, left = [], width
        part.append(column)
        left -= own
    yield part
