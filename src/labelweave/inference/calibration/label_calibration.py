"""What logistic curves and isotonic maps share."""

from __future__ import annotations

from labelweave.array_types import Array
from labelweave.model_files import StoredParameters


class LabelCalibration(StoredParameters):
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
