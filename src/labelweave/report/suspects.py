"""Labels of the reported rows that are probably wrong, for the page."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from labelweave.noise import find_label_errors
from labelweave.report.measured import Measured
from labelweave.report.reported_rows import ReportedRows

_MOST_ENTRIES = 2_000_000  # of rows by labels that are looked at
_FEWEST_ROWS, _MOST_SHOWN = 50, 12
_LEAST = 0.5


def suspects(rows: ReportedRows, measured: Measured) -> list[SimpleNamespace]:
    """Give the entries that are more likely wrong than right, the likeliest first, and why.

    None are looked for where rows have one class, or are few, or make more than two million entries.
    """
    outcomes = measured.outcomes
    truth, scores = outcomes.truth, outcomes.scores
    n_entries = scores.size
    if rows.has_classes or len(truth) < _FEWEST_ROWS or not 0 < n_entries <= _MOST_ENTRIES:
        return []
    scores = scores if measured.probabilities is None else measured.probabilities
    if not np.isfinite(scores).all() or not truth.observed_counts().any():
        return []
    found = find_label_errors(None, truth, scores=scores).ranked(_MOST_SHOWN)
    return [
        SimpleNamespace(
            row=rows.names[outcomes.rows[found.rows[place]]],
            label=str(outcomes.names[found.labels[place]]),
            recorded=bool(found.recorded[place]),
            probability=float(found.probability[place]),
            reasons=found.reasons(place),
        )
        for place in range(len(found))
        if found.probability[place] >= _LEAST
    ]
