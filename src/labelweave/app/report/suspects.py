"""Labels of the reported rows that are probably wrong, for the page."""

from __future__ import annotations

from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import numpy as np

from labelweave.app.facts import covariance_of
from labelweave.app.noise import find_label_errors
from labelweave.app.report.measured import Measured
from labelweave.app.report.reported_rows import ReportedRows
from labelweave.decisions.layers import innermost

_MOST_ENTRIES = 2_000_000  # of rows by labels that are looked at
_FEWEST_ROWS, _MOST_SHOWN = 50, 12
_LEAST = 0.5


def suspects(rows: ReportedRows, measured: Measured) -> list[SimpleNamespace]:
    """Give the entries that are more likely wrong than right, the likeliest first, and why.

    None are looked for where rows have one class, or are few, make more than two million entries, or have
    scores of their best labels alone.
    """
    outcomes = measured.outcomes
    truth, scores = outcomes.truth, outcomes.scores
    n_entries = scores.size
    if rows.has_classes or outcomes.is_searched or len(truth) < _FEWEST_ROWS:
        return []
    if not 0 < n_entries <= _MOST_ENTRIES:
        return []
    scores = scores if measured.probabilities is None else measured.probabilities
    if not np.isfinite(scores).all() or not truth.observed_counts().any():
        return []
    related = _known_structure(rows.classifier, truth.n_labels)
    found = find_label_errors(None, truth, scores=scores, related=related).ranked(_MOST_SHOWN)
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


def _known_structure(classifier: Any, n_labels: int) -> Any:
    """Give the graph or the covariance that a model relates its labels by; True where it has none."""
    found = getattr(innermost(classifier), "label_graph_", None)
    with suppress(ValueError):
        found = covariance_of(classifier) if found is None else found
    is_known = found is not None and found.n_labels == n_labels
    return found if is_known and getattr(found, "ties_labels", True) else True
