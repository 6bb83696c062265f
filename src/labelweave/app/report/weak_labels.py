"""Weak labels of a model, the reasons, the labels predicted instead, and probable label errors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelweave.app.noise import find_label_errors
from labelweave.app.report.label_numbers import LabelNumbers, LabelStructure, count_words
from labelweave.app.report.measured import Measured
from labelweave.app.report.reported_rows import SEARCHED, Outcomes, ReportedRows
from labelweave.foundation.array_types import Array
from labelweave.metrics import f1_score
from labelweave.postprocessing import choose_thresholds

_MOST = 6
_FEW_ROWS = 10
_WELL_RANKED = 0.85
_BADLY_RANKED = 0.7
_WORTH_SAYING = 0.05
_OFTEN = 0.25
_MOST_ENTRIES = 2_000_000  # rows times labels to check for label errors
_FEWEST_ROWS, _MOST_SUSPECTS = 50, 12
_LEAST = 0.5  # probability of error of listed entries


class Companion(NamedTuple):
    """Another label, and its number of rows, or expected number for probabilities."""

    name: str
    n_rows: float


def companions(outcomes: Outcomes, labels: list[int]) -> list[SimpleNamespace]:
    """Return the labels that co-occur with errors.

    ``instead``: wrongly predicted where the label was missed, the most frequent first; ``there``: true where
    it was predicted wrongly, those first that exceed their usual frequency most.
    """
    truth, names, wrong = outcomes.truth, outcomes.names, outcomes.expected_wrong
    positives = truth.expected_positives.astype(np.float64)
    instead = sp.csr_array(outcomes.expected_missed[:, labels].T @ wrong)
    there = sp.csr_array(wrong[:, labels].T @ positives)
    usual = positives.sum(axis=0) / np.maximum(truth.observed_counts(), 1)
    rows, nothing = np.asarray(wrong[:, labels].sum(axis=0)).ravel(), np.zeros(len(names))
    return [
        SimpleNamespace(
            instead=_best(instead[[k]], names, nothing, label),
            there=_best(there[[k]], names, usual * rows[k], label),
        )
        for k, label in enumerate(labels)
    ]


def _best(counts: sp.csr_array, names: list[str], expected: Array, label: int) -> list[Companion]:
    # ties by number, since the order of sparse products varies
    order = np.lexsort((counts.indices, expected[counts.indices] - counts.data))
    order = order[counts.indices[order] != label][:_MOST]
    return [Companion(names[counts.indices[k]], float(counts.data[k])) for k in order]


def chief_confusions(outcomes: Outcomes) -> list[Companion | None]:
    """Return for every label the most frequent wrong prediction where it was missed, if any."""
    counts, names = sp.csr_array(outcomes.expected_missed.T @ outcomes.expected_wrong), outcomes.names
    rows = np.repeat(np.arange(len(names)), np.diff(counts.indptr))
    order = np.lexsort((counts.indices, -counts.data, rows))[counts.indptr[:-1][np.diff(counts.indptr) > 0]]
    found: list[Companion | None] = [None] * len(names)
    for row, place in zip(rows[order], order, strict=True):
        found[row] = Companion(names[counts.indices[place]], float(counts.data[place]))
    return found


def weak_labels(
    outcomes: Outcomes, numbers: LabelNumbers, labels: list[int], has_classes: bool
) -> list[SimpleNamespace]:
    """Analyze weak labels: numbers and names, probable causes, co-occurring labels."""
    if not labels:
        return []
    best = [(np.nan, np.nan)] * len(labels) if has_classes else _best_f1(outcomes, labels)
    found = []
    for label, beside, (threshold, f1) in zip(labels, companions(outcomes, labels), best, strict=True):
        reasons = _counts(outcomes, numbers, label, has_classes)
        limit = None if outcomes.thresholds is None else float(outcomes.thresholds[label])
        reasons += _ranking(numbers, label, threshold, f1, limit)
        reasons += _confusions(numbers, label, beside, has_classes)
        name = outcomes.names[label]
        found.append(SimpleNamespace(label=label, name=name, reasons=reasons, companions=beside))
    return found


def _best_f1(outcomes: Outcomes, labels: list[int]) -> list[tuple[float, float]]:
    """Return the best threshold on these rows, and its F1 score."""
    truth, scores = outcomes.truth.select_labels(labels), outcomes.scores_of(labels)
    thresholds = choose_thresholds(truth, scores, "macro_f1").thresholds
    predicted = sp.csr_array((scores > thresholds).astype(np.int8))
    f1 = np.asarray(f1_score(truth, predicted, average=None))
    return list(zip(thresholds.tolist(), f1.tolist(), strict=True))


def _counts(outcomes: Outcomes, numbers: LabelNumbers, label: int, has_classes: bool) -> list[str]:
    counts = [count[label] for count in (numbers.positive, numbers.predicted, numbers.missed, numbers.wrong)]
    positive, predicted, missed, wrong = map(count_words, counts)
    said = []
    if counts[0] < _FEW_ROWS:
        rows = f"Only {positive} row{' has' if positive == '1' else 's have'} it here"
        said.append(f"{rows}, so these numbers are imprecise.")
    if not counts[1]:
        said.append(_never_predicted(outcomes, label, has_classes))
    elif not numbers.hits[label]:
        said.append(
            f"It is never found: all {positive} rows with it are missed, {predicted} others are predicted."
        )
    elif counts[2] > counts[3]:
        said.append(f"Mostly it is missed: {missed} of the {positive} rows that have it.")
    else:
        said.append(f"Mostly it is predicted too often: {wrong} of {predicted} predictions are wrong.")
    return said


def _never_predicted(outcomes: Outcomes, label: int, has_classes: bool) -> str:
    highest = outcomes.highest_score(label)
    if np.isnan(highest):
        return f"It is never predicted, and never among the {SEARCHED} best labels of a row with known value."
    limit = None if outcomes.thresholds is None else outcomes.thresholds[label]
    needed = "" if has_classes or limit is None else f"; it is predicted above {_number(limit)}"
    return f"It is never predicted: its highest {outcomes.number} is {_number(highest)}{needed}."


def _ranking(
    numbers: LabelNumbers, label: int, threshold: float, f1: float, limit: float | None
) -> list[str]:
    """Attribute errors to scores or to the threshold, the limit."""
    auc = numbers.auc[label]
    if auc < _BADLY_RANKED:
        return [f"Its scores hardly separate its rows from others (AUC {auc:.2f}, 0.5 is chance)."]
    if not f1 > numbers.f1[label] + _WORTH_SAYING:
        return []
    if np.isnan(auc):
        return [f"With the threshold {_number(threshold)} its F1 here would be {f1:.2f}."]
    ranked = f"Its scores rank rows well (AUC {auc:.2f})" if auc >= _WELL_RANKED else f"The AUC is {auc:.2f}"
    instead = "" if limit is None else f", not {_number(limit)}"
    return [f"{ranked}; with the threshold {_number(threshold)}{instead}, its F1 here would be {f1:.2f}."]


def _confusions(numbers: LabelNumbers, label: int, beside: SimpleNamespace, has_classes: bool) -> list[str]:
    missed = numbers.missed[label]
    if not beside.instead or beside.instead[0].n_rows < max(2, _OFTEN * missed):
        return []
    name, count = beside.instead[0]
    how = "it is confused with" if has_classes else "where it is missed, the model wrongly predicts"
    return [f"In {count_words(count)} of {count_words(missed)} rows {how} {name}."]


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−") if value else "0"


def suspects(rows: ReportedRows, measured: Measured, structure: LabelStructure) -> list[SimpleNamespace]:
    """Return the entries that are more likely wrong than right, the most likely first, and why.

    None are returned for one class per row, few rows, more than two million entries, or scores of only the
    best labels.
    """
    outcomes, truth = measured.outcomes, measured.outcomes.truth
    if rows.has_classes or outcomes.is_searched or len(truth) < _FEWEST_ROWS:
        return []
    scores = outcomes.scores if measured.probabilities is None else measured.probabilities
    if not 0 < outcomes.scores.size <= _MOST_ENTRIES or not np.isfinite(scores).all():
        return []
    if not truth.observed_counts().any():
        return []
    related: Any = structure.covariance if structure.graph is None else structure.graph
    if related is None or related.n_labels != truth.n_labels or not getattr(related, "ties_labels", True):
        related = True
    found = find_label_errors(None, truth, scores=scores, related=related).ranked(_MOST_SUSPECTS)
    return [
        SimpleNamespace(
            row=rows.names[outcomes.rows[found.rows[place]]],
            label=outcomes.names[found.labels[place]],
            recorded=bool(found.recorded[place]),
            probability=float(found.probability[place]),
            reasons=found.reasons(place),
        )
        for place in range(len(found))
        if found.probability[place] >= _LEAST
    ]
