"""What logistic curves and isotonic maps share."""

from __future__ import annotations

from labelweave.foundation.array_types import Array
from labelweave.inference.labeled_scores import read_score_table
from labelweave.model_files import StoredParameters


class LabelCalibration(StoredParameters):
    """A map from scores to probabilities, label by label, that a model file can keep."""

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        raise NotImplementedError

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

        Raises
        ------
        ValueError
            If the scores are not finite numbers, one column a label.
        """
        table = read_score_table(scores)
        if table.shape[1] != self.n_labels:
            raise ValueError(
                f"scores have shape {table.shape}; give one column for each of {self.n_labels} labels."
            )
        return self._probabilities(table)

    def _probabilities(self, scores: Array) -> Array:
        raise NotImplementedError
