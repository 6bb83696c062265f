"""Thresholds that bound the fraction of missed or of wrong labels in future rows.

The risk at a threshold t is the expectation, over rows, of the fraction of a row's true labels whose scores
are not above t ("false negatives"), or of the fraction of its predicted labels that are wrong ("false
discoveries"); the fraction of an empty set is 0.  It is estimated on n held-out calibration rows.

*In expectation* (Angelopoulos, Bates, Fisch, Lei and Schuster, "Conformal risk control", ICLR 2024): false
negatives never fall as t rises, so at the largest t with ``(sum of losses + 1) / (n + 1) <= level`` the
expected loss of the next row is at most the level.

*With probability* (Bates et al., "Distribution-free, risk-controlling prediction sets", J. ACM 2021;
Angelopoulos, Bates, Candes, Jordan and Lei, "Learn then test", 2021): every t has a p-value for "the risk at
t exceeds the level", valid by Hoeffding and Bentkus.  Starting from the safe end, thresholds are accepted
while p-values stay below ``1 - confidence``.  To pass the first t whose risk is too high, its own p-value
must be small, which has at most that probability; risks need no order and thresholds no grid.

*One class per row* (Romano, Sesia and Candes, "Classification with valid and adaptive coverage", NeurIPS
2020): classes enter a row's set in descending probability until their total is large enough, so that sets are
large where the model is uncertain.  That total, minus a random fraction of the last class, is the score.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from scipy.special import bdtr

from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import panels
from labelweave.labels.class_probabilities import read_class_probabilities
from labelweave.postprocessing.labeled_scores import LabeledScores, read_labeled_scores
from labelweave.postprocessing.thresholds.search import changes_on_lines, ranked_groups

Control = Literal["false_negatives", "false_discoveries"]
Guarantee = Literal["probability", "expectation"]

_RISKS_AT_ONCE = 1024
_MOST_LABELS = 1000  # per row whose false discoveries are tracked
_LEAST_LEVEL = 1e-15  # no number of rows is computed below it
_ROUNDING = 16  # units of the last place of the largest score


class ConformalThreshold(NamedTuple):
    """A threshold and its risk on the calibration rows.

    Parameters
    ----------
    threshold : float
        Labels with scores above are predicted.
    risk : float
        The mean fraction of mistakes per calibration row.
    n_rows : int
        The number of calibration rows with an observed label.
    """

    threshold: float
    risk: float
    n_rows: int


class _Test(NamedTuple):
    """Decides which mean losses of n rows are low enough."""

    level: float
    confidence: float
    guarantee: Guarantee
    n_rows: int

    def accepts(self, risks: Array) -> Array:
        if self.guarantee == "expectation":
            return np.asarray((self.n_rows * risks + 1.0) / (self.n_rows + 1.0) <= self.level)
        return p_values(risks, self.n_rows, self.level) <= 1.0 - self.confidence

    def accepted(self, risks: Array) -> int:
        """Count the risks before the first that is too high."""
        for part in panels(len(risks), _RISKS_AT_ONCE):
            low = self.accepts(risks[part])
            if not low.all():
                return int(part.start + np.argmin(low))
        return len(risks)

    def fewest_rows(self) -> int:
        """Return the number of rows below which even a risk of 0 would not be accepted."""
        if self.guarantee == "expectation":
            needed = 1.0 / max(self.level, _LEAST_LEVEL) - 1.0
        else:
            needed = np.log(1.0 - self.confidence) / np.log1p(-max(self.level, _LEAST_LEVEL))
        fewest = int(np.ceil(needed))
        return fewest + (not self._replace(n_rows=fewest).accepts(np.zeros(1))[0])  # for rounding


@checked
def control_mistakes(
    labels: Any,
    scores: Any,
    control: Control = "false_negatives",
    *,
    level: float = 0.1,
    guarantee: Guarantee = "probability",
    confidence: float = 0.95,
) -> ConformalThreshold:
    """Choose the threshold of the smallest or largest label sets whose rate of mistakes stays below a level.

    For the labels of the calibration rows and their scores see :func:`choose_thresholds`.  Labels given as
    probabilities count with their expected values, and the guarantee is for labels drawn from them; for false
    negatives of several labels per row, the expected number of missed labels is divided by the total.

    Parameters
    ----------
    control : {"false_negatives", "false_discoveries"}, default="false_negatives"
        What is bounded: the fraction of a row's true labels that are not predicted, with the smallest sets;
        or of its predicted labels that are wrong, with the largest.
    level : float, default=0.1
        The bound, above 0 and below 1.
    guarantee : {"probability", "expectation"}, default="probability"
        Whether the expected fraction of a future row is at most the level with probability ``confidence``
        over draws of the calibration rows, or on average over them, which is weaker, needs fewer rows, and
        is for false negatives only.
    confidence : float, default=0.95
        For "probability".

    Returns
    -------
    ConformalThreshold
        The threshold.

    Raises
    ------
    ValueError
        If there are too few rows for the level (the message has the required number), or invalid arguments.
    """
    check_control(control, level, guarantee, confidence)
    table = read_labeled_scores(labels, scores)
    if table.labels.observed is not None:
        table = table.rows(np.flatnonzero(np.diff(table.labels.observed.indptr)))  # drop empty rows
    test = _Test(float(level), float(confidence), guarantee, len(table.weights))
    if test.n_rows < test.fewest_rows():
        raise ValueError(
            f"There are {test.n_rows} calibration rows with observed labels, but the level {level} needs at "
            f"least {test.fewest_rows()}; pass more rows or a higher level."
        )
    walk = _walk_up if control == "false_negatives" else _walk_down
    threshold, risk = walk(table, test)
    return ConformalThreshold(threshold, risk, test.n_rows)


@checked
def adaptive_scores(probabilities: Any, seed: int = 0) -> Array:
    """Score classes by the total probability of the more probable classes of their row (APS).

    With the thresholds of :func:`control_mistakes`, "false_negatives", sets are adaptive and contain the true
    class with probability at least ``1 - level``.

    Parameters
    ----------
    probabilities : array-like of shape (n, C)
        Probabilities of the classes, with rows that sum to 1.
    seed : int, default=0
        Seed of the fraction of its own probability that each class adds to the total: one uniform number per
        row, computed from the seed and the row's probabilities, so that a row's set does not depend on the
        other rows.

    Returns
    -------
    ndarray of float64, shape (n, C)
        The negative of that total; 0, the largest score, for the most probable class, so no set is empty.

    Raises
    ------
    ValueError
        If a row is not a distribution (its sum is 1 within 0.001), or the seed is negative.

    Examples
    --------
    >>> from labelweave.postprocessing import adaptive_scores
    >>> (adaptive_scores([[0.6, 0.3, 0.1]]) + [0.0, 0.6, 0.9]).round(1).tolist()[0][0]
    0.0
    """
    if seed < 0:
        raise ValueError(f"seed is {seed}; pass an integer of 0 or more.")
    table = read_class_probabilities(probabilities).astype(np.float64)
    order = np.argsort(-table, axis=1, kind="stable")
    ranked = np.take_along_axis(table, order, axis=1)
    masses = np.cumsum(ranked, axis=1) - ranked + _even_numbers(table, seed)[:, None] * ranked
    masses[:, :1] = 0.0
    scores = np.empty(table.shape)
    np.put_along_axis(scores, order, -masses, axis=1)
    return scores


def _even_numbers(table: Array, seed: int) -> Array:
    """Compute a uniform number per row from its entries, by multilinear hashing and SplitMix64's mix."""
    factors = np.random.default_rng(seed).integers(2**63, size=table.shape[1], dtype=np.uint64) * np.uint64(2)
    rounded = np.rint(table * 2.0**20).astype(np.int64).astype(np.uint64)  # removes differences by rounding
    mixed = np.asarray((rounded * (factors + np.uint64(1))).sum(axis=1, dtype=np.uint64))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return np.asarray((mixed >> np.uint64(11)) * 2.0**-53)


def p_values(risks: Array, n_rows: int, level: float) -> Array:
    """Bound (Hoeffding, Bentkus) the probability of such a low mean loss if the risk exceeds the level."""
    low = np.clip(risks, 0.0, level)
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.where(low > 0, low * np.log(low / level), 0.0)
        divergence = inside + (1.0 - low) * np.log((1.0 - low) / (1.0 - level))
    # a sum that is an integer up to rounding must not be rounded up
    mistakes = np.ceil(n_rows * np.asarray(risks) - 1e-9)
    return np.asarray(np.minimum(np.exp(-n_rows * divergence), np.e * bdtr(mistakes, n_rows, level)))


def check_control(control: Any, level: Any, guarantee: Any, confidence: Any) -> None:
    for name, value, known in (("control", control, Control), ("guarantee", guarantee, Guarantee)):
        if value not in get_args(known):
            raise ValueError(f"{name} is {value!r}; pass one of {', '.join(map(repr, get_args(known)))}.")
    for name, number in (("level", level), ("confidence", confidence)):
        if not isinstance(number, (int, float, np.number)) or not 0 < number < 1:
            raise ValueError(f"{name} is {number!r}; pass a number above 0 and below 1.")
    if (control, guarantee) == ("false_discoveries", "expectation"):
        raise ValueError(
            "guarantee='expectation' is for false negatives, whose rate rises with the threshold; for false "
            "discoveries, use guarantee='probability'."
        )


def _walk(scores: Array, changes: Array, order: Array, test: _Test) -> tuple[Array, Array, int]:
    """Sum risk changes over tied scores; return scores, risks before and after, and how many pass."""
    ends = np.flatnonzero(np.diff(scores[order], append=np.nan) != 0)
    risks = np.append(0.0, np.maximum(np.cumsum(changes[order])[ends], 0.0) / test.n_rows)
    return scores[order][ends], risks, test.accepted(risks) - 1


def _walk_up(table: LabeledScores, test: _Test) -> tuple[float, float]:
    """Raise the threshold from below all scores while few enough true labels are missed."""
    expected, counts = table.labels.expected_positives, table.row_positives()
    rows, is_some = np.repeat(np.arange(test.n_rows), np.diff(expected.indptr)), expected.data > 0
    rows, columns, shares = rows[is_some], expected.indices[is_some], expected.data[is_some]
    scores = table.scores[rows, columns].astype(np.float64)
    steps, risks, taken = _walk(scores, shares / counts[rows], np.argsort(scores), test)
    if taken == len(steps):
        return float(table.scores.max()), float(risks[-1])
    # a row scored in another batch may differ in the last bits; larger sets miss no true label
    rounding = _ROUNDING * float(np.finfo(table.scores.dtype).eps) * float(np.abs(scores).max())
    return float(np.nextafter(steps[taken] - rounding, -np.inf)), float(risks[taken])


def _walk_down(table: LabeledScores, test: _Test) -> tuple[float, float]:
    """Lower the threshold from above all scores while few enough predicted labels are wrong."""
    scores, changes, lowest = _discovery_steps(table)
    steps, risks, taken = _walk(scores, changes, np.argsort(-scores, kind="stable"), test)
    below = steps[taken] if taken < len(steps) else np.nextafter(np.float64(table.scores.min()), -np.inf)
    threshold = max(float(below), lowest)
    return threshold, float(risks[np.count_nonzero(steps > threshold)])


def _discovery_steps(table: LabeledScores) -> tuple[Array, Array, float]:
    """Return scores, changes of each row's fraction of wrong labels there, and the lowest tracked score."""
    parts, lowest = [], -np.inf
    for lines in table.row_blocks():
        ranked, hits, predicted, is_end = ranked_groups(lines, np.ones(lines.scores.shape[1]))
        if ranked.shape[1] > _MOST_LABELS:
            lowest = max(lowest, float(ranked[:, _MOST_LABELS].max()))
            ranked, hits, predicted, is_end = (a[:, :_MOST_LABELS] for a in (ranked, hits, predicted, is_end))
        line, place = np.nonzero(is_end)
        changes = changes_on_lines(line, 1.0 - hits[line, place] / predicted[line, place])
        kept = changes != 0
        parts.append((ranked[line, place][kept].astype(np.float64), changes[kept]))
    scores, changes = (np.concatenate(column) for column in zip(*parts, strict=True))
    return scores, changes, lowest
