"""What a model predicts on rows beside what is true of them, entry by entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.array_types import Array, PerLabel, PerRow, RowsByLabels
from labelweave.decisions.label_scores import score_blocks
from labelweave.labels import LabelMatrix
from labelweave.report.reported_rows import ReportedRows

__all__ = ["OnProgress", "Outcomes", "all_scores"]

OnProgress = Callable[[str], None]


@dataclass(frozen=True)
class Outcomes:
    """Truth and prediction of n rows and L labels, or of one class a row as labels.

    truth (n, L): named; unobserved entries are neither missed nor wrong.
    scores: scores, or the probabilities of classes.
    rows: the numbers of the rows in the data.
    columns: the numbers of the labels in the model.
    Shapes: predicted (n, L).
    """

    truth: LabelMatrix
    predicted: sp.csr_array
    scores: RowsByLabels
    rows: PerRow
    columns: PerLabel
    number: str = "score"

    @property
    def names(self) -> list[str]:
        """The names of the labels."""
        return [] if self.truth.names is None else self.truth.names.tolist()

    @cached_property
    def counted(self) -> sp.csr_array:
        """The predicted labels whose truth was observed."""
        observed = self.truth.observed
        return self.predicted if observed is None else _ones(self.predicted.multiply(abs(observed)))

    @cached_property
    def hits(self) -> sp.csr_array:
        """The true labels that are predicted."""
        return _ones(self.truth.positives.multiply(self.predicted))

    @cached_property
    def missed(self) -> sp.csr_array:
        """The true labels that are not predicted."""
        return _ones(self.truth.positives - self.hits)

    @cached_property
    def wrong(self) -> sp.csr_array:
        """The predicted labels that are not true."""
        return _ones(self.counted - self.hits)


def _ones(matrix: Any) -> sp.csr_array:
    """Keep where a matrix is not 0, in whole numbers that can be added up."""
    csr = sp.csr_array(matrix)
    csr.eliminate_zeros()
    csr.sort_indices()
    return sp.csr_array((np.ones(csr.nnz, np.int64), csr.indices, csr.indptr), shape=csr.shape)


def all_scores(
    rows: ReportedRows, columns: Array | None, response: str, on_progress: OnProgress
) -> tuple[Array, sp.csr_array]:
    """Score rows a block at a time.

    rows: the model and n rows.
    columns (k,): the labels to keep, None for all.
    response: what to ask the model.
    on_progress: told what is being done.
    scores (n, k): the scores, two columns for two classes as well.
    positive (n, k): ones where they are above 0.
    """
    blocks, done = list[Array](), 0
    for block in _blocks(rows, response):
        blocks.append(block if columns is None else block[:, columns])
        done += len(block)
        on_progress(f"scored {done} of {len(rows)} rows")
    positive = sp.vstack([sp.csr_array((block > 0).astype(np.int8)) for block in blocks], format="csr")
    return np.concatenate(blocks), sp.csr_array(positive)


def _blocks(rows: ReportedRows, response: str) -> Iterator[Array]:
    is_binary = rows.classifier._form.kind == "binary"
    n_columns = 2 if is_binary and response == "predict_proba" else 1 if is_binary else len(rows.label_names)
    for block in score_blocks(rows.classifier, rows.X, n_columns, response):
        yield np.column_stack([-block, block]) if block.shape[1] == 1 and is_binary else block
