"""What logistic curves and isotonic maps share."""

from __future__ import annotations

from typing import Any, Self

from labelweave.array_types import Array


class LabelCalibration:
    """A map from scores to probabilities, label by label, that a model file can keep."""

    def probabilities(self, scores: Array) -> Array:
        """Compute the probability of every label.

        Parameters
        ----------
        scores : ndarray of shape (n, L)
            Scores.

        Returns
        -------
        ndarray of float64, shape (n, L)
            The probabilities.
        """
        raise NotImplementedError

    def to_state(self) -> dict[str, Any]:
        """Give what a model file keeps; see :meth:`labelweave.model_files.Storable.to_state`."""
        return dict(vars(self))

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Make the object again; see :meth:`labelweave.model_files.Storable.from_state`."""
        return cls(**state)
