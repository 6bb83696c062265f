"""The prior of the scores as a model keeps it: kernels, each with a label covariance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from labelweave.features import Kernel
from labelweave.labels import LabelCovariance
from labelweave.model_files import storable

__all__ = ["PriorTerm", "ScorePrior"]


@dataclass(frozen=True)
class PriorTerm:
    """One kernel and how the labels share it.

    kernel: the kernel, its parameters numbers; None for a kernel matrix that was given.
    covariance: R, the scale of the kernel included.
    """

    kernel: Kernel | None
    covariance: LabelCovariance


@storable("ScorePrior")
@dataclass(frozen=True)
class ScorePrior:
    """``sum_g K_g ⊗ R_g`` and independent intercepts.

    terms: the kernels with their label covariances.
    intercept_variance: the variance of the intercepts, 0 for none.
    """

    terms: tuple[PriorTerm, ...]
    intercept_variance: float

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        return self.terms[0].covariance.n_labels

    def to_state(self) -> dict[str, Any]:
        """Give what a model file keeps.

        Returns kernels, covariances and the intercepts' variance.
        """
        return {
            "kernels": [term.kernel for term in self.terms],
            "covariances": [term.covariance for term in self.terms],
            "intercept_variance": self.intercept_variance,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> ScorePrior:
        """Make the prior again."""
        pairs = zip(state["kernels"], state["covariances"], strict=True)
        return cls(
            tuple(PriorTerm(kernel, covariance) for kernel, covariance in pairs), state["intercept_variance"]
        )
