"""Leave whole training classes out of a fit, as if they were unseen, to choose a temperature."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from labelweave.array_types import Array, PerRow
from labelweave.labels import LabelMatrix

_LOG_TEMPERATURES = (-7.0, 5.0)  # for evidence of unit spread


@dataclass(frozen=True)
class ClassFold:
    """Some classes left out.

    training, held_out: rows of the other classes, and of the classes left out.
    signs (classes, L): the attributes of the classes left out, -1 or 1, 0 where unknown.
    prior (classes,): their shares of the rows left out.
    truth (rows left out,): the class of every row left out, as a row of ``signs``.
    """

    training: Array
    held_out: Array
    signs: Array
    prior: Array
    truth: Array


def row_classes(labels: LabelMatrix, groups: Any) -> PerRow:
    """Number the classes of the rows; without groups (n,), rows with the same attributes are one class.

    Raises ValueError if there is not one class a row.
    """
    if groups is None:
        return np.unique(labels.to_signs(), axis=0, return_inverse=True)[1].ravel()
    classes = np.asarray(groups)
    if classes.shape != (len(labels),):
        raise ValueError(
            f"groups has shape {classes.shape} but y has {len(labels)} rows; give one class a row."
        )
    return np.unique(classes, return_inverse=True)[1]


def class_folds(labels: LabelMatrix, codes: PerRow, n_folds: int, seed: int) -> Iterator[ClassFold]:
    """Split the classes at random and leave each part out in turn; signatures are the majority of its rows.

    Raises ValueError if there are not two classes a part.
    """
    n_classes = int(codes.max(initial=-1)) + 1
    if n_classes < 2 * n_folds:
        raise ValueError(
            f"The training rows have {n_classes} classes, too few to leave out {n_folds} parts of two or "
            "more; lower cv or give temperature a number."
        )
    totals = np.zeros((n_classes, labels.n_labels))
    np.add.at(totals, codes, labels.to_signs())
    for held in np.array_split(np.random.default_rng(seed).permutation(n_classes), n_folds):
        kept = np.sort(held)
        out = np.isin(codes, kept)
        counts = np.bincount(codes[out], minlength=n_classes)[kept]
        yield ClassFold(
            training=np.flatnonzero(~out),
            held_out=np.flatnonzero(out),
            signs=np.sign(totals[kept]),
            prior=counts / counts.sum(),
            truth=np.searchsorted(kept, codes[out]),
        )


def best_temperature(evidence: list[Array], folds: list[ClassFold]) -> tuple[float, float]:
    """Find the temperature t under which the true classes are most likely, and the mean loss there.

    evidence (rows, classes): what multiplies t in the log posterior, for every fold.
    """
    spread = float(np.concatenate([(e - e.mean(axis=1, keepdims=True)).ravel() for e in evidence]).std())

    def loss(temperature: float) -> float:
        parts = [
            log_softmax(np.log(fold.prior) + temperature * scores, axis=1)[np.arange(len(scores)), fold.truth]
            for scores, fold in zip(evidence, folds, strict=True)
        ]
        return -float(np.concatenate(parts).mean())

    if spread == 0.0:
        return 0.0, loss(0.0)
    found = minimize_scalar(
        lambda power: loss(np.exp(power) / spread), bounds=_LOG_TEMPERATURES, method="bounded"
    )
    best = float(np.exp(found.x)) / spread
    return (best, float(found.fun)) if found.fun < loss(0.0) else (0.0, loss(0.0))
