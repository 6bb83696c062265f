"""Observed entries in bins of probability: what was announced and what was found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelweave.array_types import Floats
from labelweave.arrays import panels
from labelweave.labels import LabelMatrix
from labelweave.metrics import expected_calibration_error

__all__ = ["CalibrationCurve", "calibration_curve"]


_BLOCK_ENTRIES = 2**20


@dataclass(frozen=True)
class CalibrationCurve:
    """Bins of probability, of one label or of several together.

    name: what the legend calls the curve.
    counts (bins,): observed entries of each bin of equal width.
    predicted (bins,): their mean probability, NaN in an empty bin.
    observed (bins,): the share of positive ones, NaN in an empty bin.
    """

    name: str
    counts: Floats
    predicted: Floats
    observed: Floats
    error: float


def calibration_curve(labels: LabelMatrix, table: Floats, n_bins: int, name: str) -> CalibrationCurve:
    """Sort observed entries into bins by their probability, all labels together.

    name: what the legend calls the curve.
    Shapes: labels (n, L), table (n, L).
    Raises ValueError if no entry was observed or a probability is outside 0 to 1.
    """
    if not labels.observed_counts().any():
        raise ValueError(f"{name} has no observed entry to compare with; choose labels that have some.")
    error = expected_calibration_error(labels, table, n_bins=n_bins)
    sums = np.zeros((3, n_bins))  # of entries, probabilities and positives
    for part in panels(len(labels), max(1, _BLOCK_ENTRIES // max(1, labels.n_labels))):
        signs, block = labels[part].to_signs(), table[part]
        seen = signs != 0
        values, positive = block[seen], signs[seen] > 0
        place = np.minimum((values * n_bins).astype(np.intp), n_bins - 1)
        for number, weights in enumerate((None, values, positive)):
            sums[number] += np.bincount(place, weights, minlength=n_bins)
    predicted, observed = (
        np.divide(part, sums[0], out=np.full(n_bins, np.nan), where=sums[0] > 0) for part in sums[1:]
    )
    return CalibrationCurve(name, sums[0], predicted, observed, float(np.asarray(error)))
