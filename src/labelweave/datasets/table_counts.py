"""What a table's vectorizer learns from rows, part by part: counts that add up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from labelweave.datasets.table_vectorizer import TableVectorizer, refuse_no_scale


@dataclass(frozen=True)
class TableCounts:
    """Counts over some rows of a table.

    words: for each text column, in how many rows each word is.
    values: of each categorical column.
    numbers: of numeric columns how many there are, their mean, and the sum of squared distances from it.
    Shapes: numbers (3, n_numeric).
    """

    n_rows: int
    words: list[Counter[str]]
    values: list[set[str]]
    numbers: npt.NDArray[np.float64]

    @classmethod
    def of(cls, vectorizer: TableVectorizer, frame: Any) -> TableCounts:
        """Count in rows for a vectorizer that is to be fitted.

        Raises ValueError if a column is absent, or a number is missing or none.
        """
        frame = vectorizer._table(frame)
        table = vectorizer._numbers(frame)
        is_there = ~np.isnan(table)
        counts = is_there.sum(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):  # which is refused by name in the end
            means = np.where(is_there, table, 0).sum(axis=0) / np.maximum(counts, 1)
            squares = np.where(is_there, np.square(table - means), 0).sum(axis=0)
        words, values, _ = vectorizer._nothing_seen()
        vectorizer._see(frame, words, values)
        numbers = np.array([counts, means, squares], np.float64).reshape(3, -1)
        return cls(len(frame), words, values, numbers)

    def __add__(self, other: TableCounts) -> TableCounts:
        (count, mean, squares), (more, its_mean, its_squares) = self.numbers, other.numbers
        total = np.maximum(count + more, 1)
        with np.errstate(over="ignore", invalid="ignore"):
            apart = its_mean - mean
            together = squares + its_squares + np.square(apart) * count * more / total
            numbers = [count + more, mean + apart * more / total, together]
        return TableCounts(
            self.n_rows + other.n_rows,
            [one + two for one, two in zip(self.words, other.words, strict=True)],
            [one | two for one, two in zip(self.values, other.values, strict=True)],
            np.array(numbers),
        )

    def fitted(self, vectorizer: TableVectorizer) -> TableVectorizer:
        """Give a vectorizer fitted to the rows that were counted: up to rounding as to all of them at once.

        Raises ValueError if a text column has no word that is frequent enough, or a numeric one no number.
        """
        count, means, squares = self.numbers
        refuse_no_scale(vectorizer.numeric, count, squares)
        scales = np.sqrt(squares / np.maximum(count, 1))
        scales = np.where(scales > 10 * np.finfo(np.float64).eps * np.abs(means), scales, 1.0)
        made: TableVectorizer = clone(vectorizer)
        return made._keep(self.words, self.values, self.n_rows, means, scales)
