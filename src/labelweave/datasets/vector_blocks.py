"""Blocks of dense features, such as the numbers of a column of vectors: means and sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from labelweave.foundation.array_types import Array


@dataclass(frozen=True)
class VectorBlock:
    """A block of dense features of one name, and what stands for each where it is missing.

    Shapes: means (k,).
    """

    name: str
    means: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.means)

    @property
    def feature_names(self) -> list[str]:
        return [f"{self.name}[{place}]" for place in range(len(self))]

    def filled(self, vectors: Array) -> Array:
        """Put means where numbers are missing, in vectors (n, k)."""
        is_missing = np.isnan(vectors)
        return (
            np.where(is_missing, self.means.astype(vectors.dtype), vectors) if is_missing.any() else vectors
        )


@dataclass(frozen=True)
class VectorSums:
    """Of the vectors of some rows, how many numbers there are at each place, and their sums: (k,) each.

    They add up over rows.  k is 0 where no row had a vector.
    """

    name: str
    counts: Any
    sums: Any

    @classmethod
    def of(cls, name: str, vectors: Array | None = None) -> Self:
        """Add vectors (n, k) up; None of no row."""
        if vectors is None:
            return cls(name, np.zeros(0, np.intp), np.zeros(0))
        counts = np.count_nonzero(~np.isnan(vectors), axis=0)
        return cls(name, counts, np.nansum(vectors, axis=0, dtype=np.float64))

    def __len__(self) -> int:
        return len(self.sums)

    def __add__(self, other: Self) -> Self:
        if not len(self) or not len(other):
            return self if len(self) else other
        if len(self) != len(other):
            raise ValueError(
                f"The column {self.name!r} has vectors of {len(self)} numbers in some rows and of "
                f"{len(other)} in others; give vectors of one length."
            )
        return type(self)(self.name, self.counts + other.counts, self.sums + other.sums)

    def block(self) -> VectorBlock:
        """Give the block of these rows; refuse one of no vectors, or of which a number is nowhere."""
        if not len(self) or not self.counts.all():
            what = f"no number at place {int(np.argmin(self.counts))}" if len(self) else "no vector"
            raise ValueError(f"The vectors column {self.name!r} has {what} in any row; leave it out.")
        return VectorBlock(self.name, self.sums / self.counts)
