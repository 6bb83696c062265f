"""Which other labels stand where a label was missed, or wrongly predicted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from labelweave.array_types import Array
from labelweave.report.outcomes import Outcomes

__all__ = ["Companion", "Companions", "chief_confusions", "companions"]


_MOST = 6


class Companion(NamedTuple):
    """Another label, and in how many of the rows it stands."""

    name: str
    n_rows: int


class Companions(NamedTuple):
    """Other labels on the rows where one is wrong.

    instead: where it was missed: what was predicted wrongly, the most frequent first.
    there: where it was predicted wrongly: what is true, those first that are there most often above what they
        are in all rows.
    """

    instead: list[Companion]
    there: list[Companion]


def companions(outcomes: Outcomes, labels: list[int]) -> list[Companions]:
    """Find the labels that stand beside errors.

    labels: the labels whose errors to look at.
    """
    truth, names = outcomes.truth, outcomes.names
    instead = sp.csr_array(outcomes.missed[:, labels].T @ outcomes.wrong)
    there = sp.csr_array(outcomes.wrong[:, labels].T @ truth.positives.astype(np.int64))
    usual = truth.positive_counts() / np.maximum(truth.observed_counts(), 1)
    rows = np.asarray(outcomes.wrong[:, labels].sum(axis=0)).ravel()
    return [
        Companions(
            _best(instead[[k]], names, np.zeros(len(names))),
            _best(there[[k]], names, usual * rows[k]),
        )
        for k in range(len(labels))
    ]


def _best(counts: sp.csr_array, names: list[str], expected: Array) -> list[Companion]:
    """Order labels by their counts above what is expected."""
    # equal ones by number, however a sparse product orders them
    order = np.lexsort((counts.indices, expected[counts.indices] - counts.data))[:_MOST]
    return [Companion(names[counts.indices[k]], int(counts.data[k])) for k in order]


def chief_confusions(outcomes: Outcomes) -> list[Companion | None]:
    """Find for every label what is most often predicted wrongly where it was missed.

    Returns one a label, None where nothing was.
    """
    counts = sp.csr_array(outcomes.missed.T @ outcomes.wrong)
    found: list[Companion | None] = []
    for label in range(counts.shape[0]):
        part = slice(counts.indptr[label], counts.indptr[label + 1])
        columns, values = counts.indices[part], counts.data[part]
        best = None if not len(values) else np.lexsort((columns, -values))[0]
        found.append(None if best is None else Companion(outcomes.names[columns[best]], int(values[best])))
    return found
