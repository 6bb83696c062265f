"""Calibration, thresholds, conformal sets and hierarchies on partitions.

Rows are fitted and scored where they are; labels, and scores of held-out rows, come to the
client, where the ordinary classifier chooses its decisions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from distributed import Client

from labelweave.dask.client import budget_of, budget_words, innermost, unfitted
from labelweave.dask.data import ReadData, gathered_labels
from labelweave.dask.parts import Parts
from labelweave.dask.rows import rows_of
from labelweave.decisions import HierarchicalClassifier, label_scores
from labelweave.decisions.base import DecisionClassifier
from labelweave.decisions.label_scores import FittedPart, TrainingRows
from labelweave.estimators.held_out import HeldOutScores, count_parts, held_out_count
from labelweave.estimators.journal import meta_fit_method
from labelweave.features import FeatureMatrix
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import panels
from labelweave.labels import LabelMatrix

_BYTES_A_LABEL = 5  # per stored entry


@dataclass(frozen=True, kw_only=True)
class PartitionedRows(TrainingRows):
    """Training rows in partitions on a cluster; X and y only have the number of rows, for splitters."""

    client: Client
    read: ReadData
    is_verbose: bool
    fit_to: Callable[..., Any]

    def fit(
        self, decider: Any, rows: Array | None = None, part: FittedPart | None = None, estimator: Any = None,
        *, is_kept: bool = False,
    ) -> Any:  # fmt: skip
        if self.is_verbose:
            what = "all rows" if rows is None else f"{len(rows)} of {len(self.labels)} rows"
            sys.stderr.write(f"labelweave: {type(decider).__name__} on Dask: a fit to {what}\n")
        data = self.read if rows is None else self.read.some_rows(self.client, rows)
        start = None if part is None or rows is not None else part.model
        is_part = rows is not None and not is_kept
        model = unfitted(decider.estimator if estimator is None else estimator)
        return self.fit_to(model, self.client, data, is_part=is_part, start=start)

    def score_blocks(self, part: FittedPart, rows: Array, response: str) -> Iterator[Array]:
        n_labels = self.labels.n_labels
        parts = Parts(self.client, self.read.rows, [facts.n_rows for facts in self.read.facts])
        of_rows = partial(
            _scores, model=part.model, n_labels=n_labels, response=response, classes=self.classes
        )
        for some in panels(len(rows), label_scores.rows_at_once(n_labels)):
            yield parts.mapped(of_rows, rows[some])

    def looked_at(self, part: FittedPart, response: str) -> Callable[[], HeldOutScores] | None:
        if part.rows is None:
            return None
        found = self._score_fitted(part, response)  # now, as the last fit releases the rows
        return lambda: found


def _scores(
    features: FeatureMatrix, model: Any, n_labels: int, response: str, classes: Array | None
) -> Array:
    return np.concatenate(
        list(label_scores.score_blocks(model, rows_of(features), n_labels, response, classes))
    )


def fit_decider(model: DecisionClassifier, client: Client, data: ReadData, fit_to: Callable[..., Any]) -> Any:
    """Fit the estimator inside on the cluster, and choose decisions on the client; return the model.

    fit_to: fits a model in place to partitions that workers have read.
    """
    reader, form = innermost(model), data.form
    _refuse_many(model, data, budget_of(reader), budget_words(reader))
    if form.has_one_class:  # a fitted model may have more classes
        form = model._read_targets(form.classes)[1]
    labels, weights = gathered_labels(client, replace(data, form=form))
    y: Any = labels
    if form.has_one_class and hasattr(model.cv, "split"):
        y = form.decide(labels.to_signs())
    labels, classes = model._keep_targets(labels, form)
    rows = PartitionedRows(
        X=np.empty((len(labels), 0)),
        y=y,
        labels=labels,
        weights=None if (weights == 1).all() else weights,
        classes=classes,
        client=client,
        read=_to_fit(client, data, model),
        is_verbose=bool(reader.verbose),
        fit_to=fit_to,
    )
    return _fit_rows(model, rows)


@meta_fit_method
def _fit_rows(model: DecisionClassifier, data: PartitionedRows) -> Any:
    return model._fit_rows(data)


def _to_fit(client: Client, data: ReadData, model: DecisionClassifier) -> ReadData:
    """Return the rows with the labels that the estimator learns."""
    if not isinstance(model, HierarchicalClassifier):
        return data
    return data.relabeled(client, partial(_completed, model))


def _completed(model: HierarchicalClassifier, labels: LabelMatrix) -> LabelMatrix:
    return model._labels_to_fit(model._completed(labels))


def _refuse_many(model: DecisionClassifier, data: ReadData, budget: float, words: str) -> None:
    """Raise if labels and scores exceed the client's budget."""
    n_rows, n_labels = data.n_rows, len(data.counts.positives)
    n_scored = _n_scored(model, n_rows)
    n_held = min(n_scored, label_scores.most_scored(n_labels))
    observed = data.counts.observed
    stored = data.counts.positives.sum() + (observed.sum() if (observed < n_rows).any() else 0)
    size = np.dtype(label_scores.precision_of(n_held, n_labels)).itemsize
    megabytes = 1e-6 * (size * n_held * n_labels + _BYTES_A_LABEL * stored)
    if megabytes > budget:
        less = ", or pass a smaller `validation_fraction`" if n_scored < n_rows else ""
        raise ParameterError(
            f"{type(model).__name__} brings the labels of {n_rows} rows to the client, and scores of "
            f"{n_held} of them for {n_labels} labels, which take {megabytes:.0f} MB, but {words}; raise "
            f"it{less}."
        )


def _n_scored(model: DecisionClassifier, n_rows: int) -> int:
    """Return the number of rows whose scores decide."""
    if isinstance(model, HierarchicalClassifier):
        return 0
    if model.cv is not None or count_parts(model.validation_fraction, n_rows) > 1:
        return n_rows
    return held_out_count(model.validation_fraction, n_rows)
