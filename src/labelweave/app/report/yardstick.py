"""References for a model's metrics: a baseline without features, intervals, a verdict in words.

Intervals are two standard errors to both sides, from 50 bootstrap draws of rows; for large tables
from smaller draws of m of n rows, with errors scaled by sqrt(m / n) (Bickel, Götze and van Zwet,
"Resampling fewer than n observations", Statistica Sinica 7, 1997).
"""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from labelweave.app.report.label_numbers import LabelNumbers
from labelweave.app.report.measured import Measured, metric_line
from labelweave.app.report.reported_rows import SEARCHED
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import ratios
from labelweave.labels import Taxonomy
from labelweave.metrics import class_summary, log_loss, score_table
from labelweave.metrics.probabilities import CALIBRATION_FROM

_DRAWS = 50
_ENTRIES_A_DRAW = 200_000
_LEAST_ROWS = 100
_ERRORS = 1.96
_UNBOUNDED = ("log_loss", "taxonomic_loss", "coverage_error")
_FEW_ROWS = 30
_SMALL, _LARGE = 0.1, 10.0


class Interval(NamedTuple):
    """The 95 % confidence interval of a metric."""

    low: float
    high: float

    @property
    def digits(self) -> int:
        """The number of decimals that distinguish the ends."""
        return 4 if self.high < _SMALL else 3 if self.high < _LARGE else 1


def baseline_metrics(measured: Measured, taxonomy: Taxonomy | None) -> dict[str, float]:
    """Return the metrics of constant predictions: the most frequent labels, as many as the mean, or class.

    Frequencies are those of the rows themselves, an upper bound for a baseline from training rows.
    """
    truth, names = measured.outcomes.truth, measured.outcomes.names
    frequencies = ratios(truth.positive_counts(), truth.observed_counts(), 0.0)
    scores = np.broadcast_to(frequencies, (len(truth), len(names)))
    usual = 1 if measured.true_nodes is not None else max(1, round(float(frequencies.sum())))
    order = np.argsort(-frequencies, kind="stable")
    predicted = _same_in_all_rows(np.ones(len(names), np.int8), order[:usual], len(truth))
    if measured.outcomes.is_searched:
        scores = _same_in_all_rows(frequencies, order[:SEARCHED], len(truth))
    if measured.true_nodes is not None and "log_loss" in measured.metrics:
        shares = np.broadcast_to(frequencies, (len(measured.true_nodes), len(names)))
        always = np.full(len(shares), names[int(order[0])], object)
        true = measured.true_nodes.astype(object)
        return class_summary(true, shares, names, taxonomy=taxonomy, y_pred=always)
    found = score_table(truth, scores, predicted)
    if "accuracy" in measured.metrics:
        found["accuracy"] = float(frequencies.max())
    if "log_loss" in measured.metrics:
        found["log_loss"] = log_loss(truth, scores)
    return found


def _same_in_all_rows(values: Array, labels: Array, n_rows: int) -> sp.csr_array:
    """Return the values of some labels, as a sparse table with identical rows."""
    labels = np.sort(labels)
    ends = len(labels) * np.arange(n_rows + 1)
    parts = np.tile(values[labels], n_rows), np.tile(labels, n_rows), ends
    return sp.csr_array(parts, shape=(n_rows, len(values)))


def intervals(measured: Measured) -> dict[str, Interval]:
    n_rows, rng = measured.n_counted, np.random.default_rng(0)
    if n_rows < 2:
        return {}
    size = min(n_rows, max(_LEAST_ROWS, _ENTRIES_A_DRAW // max(1, len(measured.outcomes.names))))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # a draw may miss all rows of a label
        draws = [measured.metrics_of(rng.integers(0, n_rows, size)) for _ in range(_DRAWS)]
    found = {}
    for key in measured.metrics:
        values = np.array([draw.get(key, np.nan) for draw in draws])
        if np.isfinite(values).sum() > _DRAWS // 2:
            error = _ERRORS * float(np.nanstd(values, ddof=1)) * math.sqrt(size / n_rows)
            value, highest = measured.metrics[key], math.inf if key in _UNBOUNDED else 1.0
            found[key] = Interval(max(0.0, value - error), min(highest, value + error))
    return found


def verdict(
    measured: Measured, numbers: LabelNumbers, found: dict[str, Interval], baseline: dict[str, float]
) -> list[str]:
    has_classes = measured.true_nodes is not None
    key, label = ("accuracy", "class") if has_classes else ("micro_f1", "label")
    said = [_against_baseline(key, label, measured, found, baseline)]
    counts = (numbers.positive, numbers.predicted, numbers.hits)
    positive, predicted, hits = (float(count.sum()) for count in counts)
    if not has_classes and positive and predicted:
        found_share, right_share = hits / positive, hits / predicted
        said.append(f"It finds {found_share:.0%} of the labels that rows have.")
        said.append(f"Of its predicted labels {right_share:.0%} are right.")
    there = numbers.positive > 0
    some, never = int(there.sum()), int((there & (numbers.hits == 0)).sum())
    if never:
        kinds, are = "classes" if has_classes else "labels", "is" if never == 1 else "are"
        said.append(f"Of the {some} {kinds} in these rows, {never} {are} never found.")
    error = measured.metrics.get("calibration_error")
    if error is not None:
        said.append(
            f"Its probabilities above {CALIBRATION_FROM:g} differ by {error:.2f} on average from the "
            "observed share."
        )
    if measured.n_counted < _FEW_ROWS:
        said.append(f"These numbers are from only {measured.n_counted} rows, so they are imprecise.")
    return said


def _against_baseline(
    key: str, label: str, measured: Measured, found: dict[str, Interval], baseline: dict[str, float]
) -> str:
    value, other = measured.metrics[key], baseline.get(key, math.nan)
    interval = found.get(key, Interval(value, value))
    always = f"always predicting the most frequent {label}{'' if label == 'class' else 's'}"
    said = f"not clearly better than {always}"
    if interval.low > other:
        said = f"better than {always}"
    elif interval.high < other:
        said = f"worse than {always}, which needs no model"
    shown = "" if key not in found else f" ({interval.low:.2f} to {interval.high:.2f})"
    return f"The model is {said}: {metric_line(key, value).name} {value:.2f}{shown} against {other:.2f}."
