"""Scores as sums of kernels to training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.features import Kernel
from labelweave.model_files import storable

__all__ = ["KernelExpansion"]

Array = npt.NDArray[Any]


@storable("KernelExpansion")
@dataclass(frozen=True)
class KernelExpansion:
    """One term of the scores: ``scores[:, labels] += k(x, rows) @ coefficients``.

    Parameters
    ----------
    kernel : Kernel or None
        k; None for a kernel matrix that is given.
    rows : ndarray of int, shape (m,)
        Which support rows.
    labels : ndarray of int, shape (k,)
        Which labels.
    coefficients : ndarray of float64, shape (m, k)
        The coefficients.
    """

    kernel: Kernel | None
    rows: Array
    labels: Array
    coefficients: Array

    def add_to(self, scores: Array, block: Array) -> None:
        """Add the term.

        Parameters
        ----------
        scores : ndarray of shape (n, L)
            What to add to.
        block : ndarray of shape (n, m)
            The kernel between the rows to be scored and the term's rows.
        """
        if len(self.labels) == scores.shape[1]:
            scores += block @ self.coefficients
        else:
            scores[:, self.labels] += block @ self.coefficients

    def to_state(self) -> dict[str, Any]:
        """Give what a model file keeps.

        Returns
        -------
        dict
            The fields.
        """
        return dict(vars(self))

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> KernelExpansion:
        """Make the term again.

        Parameters
        ----------
        state : dict
            What ``to_state`` gave.

        Returns
        -------
        KernelExpansion
            The term.
        """
        return cls(**state)
