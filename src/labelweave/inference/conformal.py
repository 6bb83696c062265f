"""Thresholds that bound the share of missed labels, or of wrong ones, for rows to come.

The risk at a threshold t is the expectation, over rows, of the share of a row's true labels whose scores are
not above t ("false negatives"), or of the share of its predicted labels that are wrong ("false
discoveries"); a share of nothing is 0.  It is estimated on n calibration rows, which the model did not see.

*In expectation* (Angelopoulos, Bates, Fisch, Lei and Schuster, "Conformal risk control", ICLR 2024): false
negatives never fall as t rises, so at the greatest t with ``(sum of losses + 1) / (n + 1) <= level`` the
expected loss of the next row is at most the level.

*With probability* (Bates et al., "Distribution-free, risk-controlling prediction sets", J. ACM 2021;
Angelopoulos, Bates, Candes, Jordan and Lei, "Learn then test", 2021): every t has a p-value for "the risk
at t exceeds the level", valid by Hoeffding and Bentkus.  From the safe end of all thresholds one moves on
while p-values stay below ``1 - confidence``.  To go past the first t whose risk is too great its own p-value
must have been small, which has at most that probability; no order among risks and no grid is needed.

*One class a row* (Romano, Sesia and Candes, "Classification with valid and adaptive coverage", NeurIPS 2020):
classes enter a row's set from the most probable on until their mass is large enough, so that sets are large
where the model is unsure.  That mass, less a random share of the last class, is a score like any other.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from scipy.special import bdtr

from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import panels
from labelweave.inference.labeled_scores import LabeledScores, read_labeled_scores
from labelweave.inference.thresholds.search import changes_on_lines, ranked_groups
from labelweave.labels.class_probabilities import read_class_probabilities

Control = Literal["false_negatives", "false_discoveries"]
Guarantee = Literal["probability", "expectation"]

_RISKS_AT_ONCE = 1024
_MOST_LABELS = 1000  # of a row whose false discoveries are followed
_LEAST_LEVEL = 1e-15  # below which no number of rows is counted
_ROUNDING = 16  # units of the last place of the largest score


class ConformalThreshold(NamedTuple):
    """A threshold and what it does on the calibration rows.

    Parameters
    ----------
    threshold : float
        Labels with scores above are predicted.
    risk : float
        The mean share of mistakes of the calibration rows.
    n_rows : int
        Calibration rows with an observed label.
    """

    threshold: float
    risk: float
    n_rows: int


class _Test(NamedTuple):
    """Which mean losses of n rows are low enough."""

    level: float
    confidence: float
    guarantee: Guarantee
    n_rows: int

    def accepts(self, risks: Array) -> Array:
        if self.guarantee == "expectation":
            return np.asarray((self.n_rows * risks + 1.0) / (self.n_rows + 1.0) <= self.level)
        return p_values(risks, self.n_rows, self.level) <= 1.0 - self.confidence

    def accepted(self, risks: Array) -> int:
        """Count the risks before the first that is too great."""
        for part in panels(len(risks), _RISKS_AT_ONCE):
            low = self.accepts(risks[part])
            if not low.all():
                return int(part.start + np.argmin(low))
        return len(risks)

    def fewest_rows(self) -> int:
        """Count the rows without which not even a risk of 0 would do."""
        if self.guarantee == "expectation":
            needed = 1.0 / max(self.level, _LEAST_LEVEL) - 1.0
        else:
            needed = np.log(1.0 - self.confidence) / np.log1p(-max(self.level, _LEAST_LEVEL))
        fewest = int(np.ceil(needed))
        return fewest + (not self._replace(n_rows=fewest).accepts(np.zeros(1))[0])  # by rounding one too few


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
    """Choose the threshold of the largest or smallest label sets whose mistakes stay below a level.

    For the labels of the calibration rows and their scores see :func:`choose_thresholds`.  Labels known by
    probabilities count as far as they are expected, and the guarantee is for labels that are drawn so; of
    false negatives among many labels a row, the expected number that is missed is divided by that of all.

    Parameters
    ----------
    control : {"false_negatives", "false_discoveries"}, default="false_negatives"
        What is bounded: the share of a row's true labels that are not predicted, with the smallest sets; or
        of its predicted labels that are wrong, with the largest.
    level : float, default=0.1
        The bound, above 0 and below 1.
    guarantee : {"probability", "expectation"}, default="probability"
        That the expected share of a row to come is at most the level: with at least the probability
        ``confidence`` over draws of the calibration rows, or on average over them, which is less, needs
        fewer rows, and is for false negatives only.
    confidence : float, default=0.95
        For "probability".

    Returns
    -------
    ConformalThreshold
        The threshold.

    Raises
    ------
    ValueError
        If there are too few rows for the level, naming how many are needed, or arguments make no sense.
    """
    check_control(control, level, guarantee, confidence)
    table = read_labeled_scores(labels, scores)
    if table.labels.observed is not None:
        table = table.rows(np.flatnonzero(np.diff(table.labels.observed.indptr)))  # without empty rows
    test = _Test(float(level), float(confidence), guarantee, len(table.weights))
    if test.n_rows < test.fewest_rows():
        raise ValueError(
            f"There are {test.n_rows} calibration rows with observed labels, but the level {level} needs at "
            f"least {test.fewest_rows()}; give more rows or a higher level."
        )
    walk = _walk_up if control == "false_negatives" else _walk_down
    threshold, risk = walk(table, test)
    return ConformalThreshold(threshold, risk, test.n_rows)


@checked
def adaptive_scores(probabilities: Any, seed: int = 0) -> Array:
    """Score classes, of which a row has one, by the mass of those that are more probable (APS).

    With the thresholds of :func:`control_mistakes`, "false_negatives", sets are adaptive and hold the true
    class with a probability of at least ``1 - level``.

    Parameters
    ----------
    probabilities : array-like of shape (n, C)
        Probabilities of the classes, every row with the sum 1.
    seed : int, default=0
        Of the share of its own probability that each class adds to the mass before it: one number a row,
        even between 0 and 1, made of the seed and the row's probabilities, so that a row has the same set
        in whatever order and company it comes.

    Returns
    -------
    ndarray of float64, shape (n, C)
        Minus that mass; 0, the greatest score, for the most probable class, so that no set is empty.

    Raises
    ------
    ValueError
        If a row is no distribution, its sum 1 within 0.001, or the seed is negative.

    Examples
    --------
    >>> from labelweave.inference import adaptive_scores
    >>> (adaptive_scores([[0.6, 0.3, 0.1]]) + [0.0, 0.6, 0.9]).round(1).tolist()[0][0]
    0.0
    """
    if seed < 0:
        raise ValueError(f"seed is {seed}; give a whole number from 0 on.")
    table = read_class_probabilities(probabilities).astype(np.float64)
    order = np.argsort(-table, axis=1, kind="stable")
    ranked = np.take_along_axis(table, order, axis=1)
    masses = np.cumsum(ranked, axis=1) - ranked + _even_numbers(table, seed)[:, None] * ranked
    masses[:, :1] = 0.0
    scores = np.empty(table.shape)
    np.put_along_axis(scores, order, -masses, axis=1)
    return scores


def _even_numbers(table: Array, seed: int) -> Array:
    """Draw a number from 0 to 1 for every row by its entries, by multilinear hashing and SplitMix64's mix."""
    factors = np.random.default_rng(seed).integers(2**63, size=table.shape[1], dtype=np.uint64) * np.uint64(2)
    rounded = np.rint(table * 2.0**20).astype(np.int64).astype(np.uint64)  # past what rounding may change
    mixed = np.asarray((rounded * (factors + np.uint64(1))).sum(axis=1, dtype=np.uint64))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return np.asarray((mixed >> np.uint64(11)) * 2.0**-53)


def p_values(risks: Array, n_rows: int, level: float) -> Array:
    """Bound, by Hoeffding and Bentkus, the probability of such low mean losses at a risk above the level."""
    low = np.clip(risks, 0.0, level)
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.where(low > 0, low * np.log(low / level), 0.0)
        divergence = inside + (1.0 - low) * np.log((1.0 - low) / (1.0 - level))
    # a sum that is whole up to rounding must not count as one more
    mistakes = np.ceil(n_rows * np.asarray(risks) - 1e-9)
    return np.asarray(np.minimum(np.exp(-n_rows * divergence), np.e * bdtr(mistakes, n_rows, level)))


def check_control(control: Any, level: Any, guarantee: Any, confidence: Any) -> None:
    for name, value, known in (("control", control, Control), ("guarantee", guarantee, Guarantee)):
        if value not in get_args(known):
            raise ValueError(
                f"{name} is {value!r}; it must be one of {', '.join(map(repr, get_args(known)))}."
            )
    for name, number in (("level", level), ("confidence", confidence)):
        if not isinstance(number, (int, float, np.number)) or not 0 < number < 1:
            raise ValueError(f"{name} is {number!r}; give a number above 0 and below 1.")
    if (control, guarantee) == ("false_discoveries", "expectation"):
        raise ValueError(
            "guarantee='expectation' is for false negatives, whose share rises with the threshold; false "
            "discoveries do not, use guarantee='probability'."
        )


def _walk(scores: Array, changes: Array, order: Array, test: _Test) -> tuple[Array, Array, int]:
    """Add up changes of the risk, equal scores together: scores, risks before and after, how many to take."""
    ends = np.flatnonzero(np.diff(scores[order], append=np.nan) != 0)
    risks = np.append(0.0, np.maximum(np.cumsum(changes[order])[ends], 0.0) / test.n_rows)
    return scores[order][ends], risks, test.accepted(risks) - 1


def _walk_up(table: LabeledScores, test: _Test) -> tuple[float, float]:
    """Raise the threshold from below all scores while few enough true labels are lost."""
    expected, counts = table.labels.expected_positives, table.row_positives()
    rows, is_some = np.repeat(np.arange(test.n_rows), np.diff(expected.indptr)), expected.data > 0
    rows, columns, shares = rows[is_some], expected.indices[is_some], expected.data[is_some]
    scores = table.scores[rows, columns].astype(np.float64)
    steps, risks, taken = _walk(scores, shares / counts[rows], np.argsort(scores), test)
    if taken == len(steps):
        return float(table.scores.max()), float(risks[-1])
    # a row that is scored again in other company may differ in the last bits; larger sets lose no true label
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
    """List how a row's share of wrong labels changes at its scores, and down to where that is followed."""
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
