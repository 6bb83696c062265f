"""What a label covariance looks like in print: size, variances, strongest correlations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from labelweave.foundation.array_types import Array

if TYPE_CHECKING:
    from labelweave.labels.covariance.base import LabelCovariance

_MOST_LABELS = 2000  # up to which all pairs of labels are looked at
_WEAKEST = 0.005  # what prints as 0.00 is left out
_LONGEST_NAME = 32
_DECIMALS = 9  # rounding must not choose among equal pairs

Pair = tuple[str, str, float]


def in_short(covariance: LabelCovariance) -> str:
    """Describe a covariance in one line.

    Returns its size and kind, the range of the variances and the strongest correlation of each sign.
    """
    parts = [f"{covariance.n_labels} labels", covariance.kind, f"variances {_variance_range(covariance)}"]
    alike, opposed = _strongest_pairs(covariance, 1)
    parts += [f"{first} ~ {second} {value:+.2f}" for first, second, value in alike + opposed]
    return f"LabelCovariance({', '.join(parts)})"


def in_full(covariance: LabelCovariance) -> str:
    """Describe a covariance in a few lines.

    Returns as :func:`in_short`, with the five strongest correlations of each sign.
    """
    lines = [
        f"Label covariance over {covariance.n_labels} labels, {covariance.kind}",
        f"variances: {_variance_range(covariance)}",
    ]
    if covariance.n_labels > _MOST_LABELS:
        lines.append(f"correlations: not listed for more than {_MOST_LABELS} labels")
    for title, pairs in zip(("positive", "negative"), _strongest_pairs(covariance, 5), strict=True):
        if pairs:
            lines.append(f"strongest {title} correlations:")
            lines += [f"  {value:+.2f}  {first} ~ {second}" for first, second, value in pairs]
    return "\n".join(lines)


def _variance_range(covariance: LabelCovariance) -> str:
    if covariance.n_labels == 0:
        return "none"
    variances = covariance.diagonal()
    lowest, highest = f"{variances.min():.3g}", f"{variances.max():.3g}"
    return lowest if lowest == highest else f"{lowest} to {highest}"


def _strongest_pairs(covariance: LabelCovariance, count: int) -> tuple[list[Pair], list[Pair]]:
    """List the highest and the lowest correlations, strongest first."""
    if covariance.is_diagonal or not 2 <= covariance.n_labels <= _MOST_LABELS:
        return [], []
    correlations = covariance.correlations()
    upper = np.triu(np.round(correlations, _DECIMALS, out=correlations), 1)
    highest = _take_highest(covariance, upper, 1.0, count)
    return highest, _take_highest(covariance, np.negative(upper, out=upper), -1.0, count)


def _take_highest(covariance: LabelCovariance, upper: Array, sign: float, count: int) -> list[Pair]:
    pairs: list[Pair] = []
    for _ in range(count):
        row, column = divmod(int(upper.argmax()), len(upper))
        if upper[row, column] < _WEAKEST:
            break
        pairs.append((_label(covariance, row), _label(covariance, column), sign * float(upper[row, column])))
        upper[row, column] = 0.0
    return pairs


def _label(covariance: LabelCovariance, label: int) -> str:
    if covariance.label_names is None:
        return str(label)
    name = str(covariance.label_names[label])
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
