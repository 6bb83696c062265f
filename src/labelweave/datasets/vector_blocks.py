"""Blocks of dense features, such as the numbers of a column of vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from labelweave.foundation.array_types import Array, Floats


@dataclass(frozen=True)
class DenseBlock:
    """Dense features of one name, and their means over training rows, which are imputed for missing numbers.

    Blocks of disjoint rows can be added.  k is 0 before the first vectors.
    Shapes: counts (k,), of observed numbers; sums (k,).
    """

    name: str
    counts: Array
    sums: Floats

    @classmethod
    def of(cls, name: str, vectors: Array) -> Self:
        """Sum the vectors (n, k) of some rows, NaN where missing."""
        counts = np.count_nonzero(~np.isnan(vectors), axis=0)
        return cls(name, counts, np.nansum(vectors, axis=0, dtype=np.float64))

    def __len__(self) -> int:
        return len(self.sums)

    def __add__(self, other: Self) -> Self:
        if not len(self) or not len(other):
            return self if len(self) else other
        if len(self) != len(other):
            lengths = f"{len(self)} numbers in some rows and of {len(other)} in others"
            raise ValueError(f"The column {self.name!r} has vectors of {lengths}; use one length.")
        return type(self)(self.name, self.counts + other.counts, self.sums + other.sums)

    def refuse_gaps(self) -> None:
        """Raise an error if there are no vectors, or a component is missing in all rows."""
        if not len(self) or not self.counts.all():
            what = f"no number at position {np.argmin(self.counts)}" if len(self) else "no vector"
            raise ValueError(f"The vectors column {self.name!r} has {what} in any row; leave it out.")

    @property
    def means(self) -> Floats:
        return self.sums / self.counts

    @property
    def feature_names(self) -> list[str]:
        return [f"{self.name}[{place}]" for place in range(len(self))]

    def filled(self, vectors: Array) -> Array:
        """Impute means for missing numbers in vectors (n, k)."""
        is_missing = np.isnan(vectors)
        return (
            np.where(is_missing, self.means.astype(vectors.dtype), vectors) if is_missing.any() else vectors
        )
