"""The training rows of attributes, and whole classes held out of them to choose a temperature."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.model_selection import KFold
from sklearn.utils.validation import has_fit_parameter

from labelweave.foundation.array_types import Array, PerRow
from labelweave.foundation.arrays import read_row_weights
from labelweave.foundation.sklearn_compat import _num_samples
from labelweave.labels import LabelMatrix
from labelweave.labels.label_names import as_text, typed, unknown_entries
from labelweave.splits.splitters import take_rows

_LOG_TEMPERATURES = (-7.0, 5.0)  # for evidence of unit spread


class TrainingRows(NamedTuple):
    """Training rows as the estimator accepts them; weights (n,) or None; their classes (n,), where needed."""

    X: Any
    y: Any
    weights: Array | None
    classes: PerRow | None = None

    def part(self, rows: Array) -> TrainingRows:
        own = [None if part is None else part[rows] for part in (self.weights, self.classes)]
        return TrainingRows(take_rows(self.X, rows), take_rows(self.y, rows), *own)


def weighted_rows(
    estimator: Any, X: Any, y: Any, groups: Any, sample_weight: Any
) -> tuple[Any, Any, Any, Array | None]:
    """Drop rows of weight 0 from the arguments of ``fit``; without weights return all of them.

    Raises ValueError if the estimator accepts no weights, or they are not one non-negative number per row.
    """
    if sample_weight is None:
        return X, y, groups, None
    if not has_fit_parameter(estimator, "sample_weight"):
        raise ValueError(
            f"sample_weight is given, but {type(estimator).__name__}.fit does not support it; leave it out."
        )
    n_rows, n_targets = _num_samples(X), _num_samples(y)
    if n_rows != n_targets:
        raise ValueError(f"X has {n_rows} rows but y has {n_targets}; they must agree.")
    weights = read_row_weights(sample_weight, n_rows)
    kept = np.flatnonzero(weights)
    if len(kept) < n_rows:
        X, y, groups = (None if part is None else take_rows(part, kept) for part in (X, y, groups))
    return X, y, groups, weights[kept]


def attribute_scores(estimator: Any, X: Any) -> Array:
    """Score the attributes of rows: shape (n, L)."""
    score = estimator.decision_function if hasattr(estimator, "decision_function") else estimator.predict
    return np.asarray(score(X), dtype=np.float64).reshape(_num_samples(X), -1)


def covariance_parameter(estimator: Any) -> str:
    """Return the name of ``label_covariance`` of an estimator, or of a step of a pipeline."""
    names = [name for name in estimator.get_params() if name.split("__")[-1] == "label_covariance"]
    if len(names) != 1:
        raise ValueError(
            f"couple_attributes is True but {type(estimator).__name__} has {len(names)} parameters named "
            "label_covariance; it must have one."
        )
    return names[0]


@dataclass(frozen=True)
class ClassFold:
    """A fold of held-out classes.

    training, held_out: rows of the other classes, and of the held-out classes.
    signs (classes, L): the attributes of the held-out classes, -1 or 1, 0 where unknown, or their vectors.
    prior (classes,): their shares of the held-out rows.
    truth (held-out rows,): the class of every held-out row, as a row of ``signs``.
    every: all classes together, where rows of the other classes are held out too.
    """

    training: Array
    held_out: Array
    signs: Array
    prior: Array
    truth: Array
    weights: Array
    every: EveryClass | None = None


@dataclass(frozen=True)
class EveryClass:
    """All held-out rows of a fold, whatever their class, and all classes they may have.

    signs (C, L): the attributes of all classes.
    truth (rows,): the class of every row.
    weights (rows,): their weights.
    is_seen (C,): which classes were not held out.
    """

    rows: Array
    signs: Array
    truth: Array
    weights: Array
    is_seen: Array


def read_groups(groups: Any, n_rows: int) -> PerRow | None:
    """Read one class per row, all text or all numbers, (n,), or None; raise ValueError for anything else."""
    if groups is None:
        return None
    try:
        classes = np.asarray(groups)
    except ValueError:
        raise ValueError("groups has rows of different lengths; pass one class per row.") from None
    if classes.shape != (n_rows,):
        raise ValueError(f"groups has shape {classes.shape} but y has {n_rows} rows; pass one class per row.")
    unknown = np.flatnonzero(unknown_entries(classes))
    if len(unknown):
        raise ValueError(f"groups at row {unknown[0]} has no class; remove such rows, or name a class.")
    classes = typed(classes)
    if len({isinstance(entry, Real) for entry in classes.tolist()}) > 1:
        raise ValueError("groups mixes texts and numbers; use one type.")
    return classes


def row_classes(labels: LabelMatrix, groups: PerRow | None) -> PerRow:
    """Number the classes of the rows; without groups (n,), rows with the same attributes are one class."""
    if groups is None:
        return np.unique(labels.to_signs(), axis=0, return_inverse=True)[1].ravel()
    return np.unique(groups, return_inverse=True)[1]


def row_folds(signs: Array, codes: PerRow, weights: PerRow, n_folds: int, seed: int) -> Iterator[ClassFold]:
    """Hold rows out in turn, where no class is unseen; codes (n,): their classes, as rows of the signs."""
    prior = np.full(len(signs), 1 / len(signs))
    splitter = KFold(min(n_folds, len(codes)), shuffle=True, random_state=seed)
    for training, held_out in splitter.split(codes):
        yield ClassFold(training, held_out, signs, prior, codes[held_out], weights[held_out])


def majority_signs(labels: LabelMatrix, codes: PerRow, weights: PerRow) -> Array:
    """Return the attributes of the classes of rows (n, L), (classes, L): the majority of their rows, or 0."""
    totals = np.zeros((int(codes.max(initial=-1)) + 1, labels.n_labels))
    np.add.at(totals, codes, labels.to_signs() * weights[:, None])
    return np.asarray(np.sign(totals))


def class_folds(
    table: Array, codes: PerRow, weights: PerRow, n_folds: int, seed: int, *, with_seen: bool = False
) -> Iterator[ClassFold]:
    """Split the classes at random and hold each part out in turn.

    table (classes, L): the signatures of the classes that the codes (n,) number.
    with_seen: whether to hold out a part of the rows of the other classes too.
    Raises ValueError if there are not two classes per part.
    """
    n_classes = len(table)
    if n_classes < 2 * n_folds:
        raise ValueError(
            f"y has {n_classes} classes, too few for {n_folds} folds of two or more; lower cv, or set "
            "temperature to a number (for attributes)."
        )
    generator = np.random.default_rng(seed)
    for held in np.array_split(generator.permutation(n_classes), n_folds):
        kept = np.sort(held)
        out = np.isin(codes, kept)
        counts = np.bincount(codes[out], weights[out], n_classes)[kept]
        training, every = np.flatnonzero(~out), None
        if with_seen:
            training = np.sort(generator.permutation(training)[len(training) // n_folds :])
            rows = np.setdiff1d(np.arange(len(codes)), training)
            is_seen = ~np.isin(np.arange(n_classes), kept)
            every = EveryClass(rows, table, codes[rows], weights[rows], is_seen)
        yield ClassFold(
            training=training,
            held_out=np.flatnonzero(out),
            signs=table[kept],
            prior=counts / counts.sum(),
            truth=np.searchsorted(kept, codes[out]),
            weights=weights[out],
            every=every,
        )


def best_temperature(evidence: list[Array], folds: list[ClassFold]) -> tuple[float, float]:
    """Find the temperature t under which the true classes are most likely, and the mean loss there.

    evidence (rows, classes): the factor of t in the log posterior, for every fold.
    """
    weights = np.concatenate([fold.weights for fold in folds])
    spread = float(np.concatenate([(e - e.mean(axis=1, keepdims=True)).ravel() for e in evidence]).std())

    def loss(temperature: float) -> float:
        parts = [
            log_softmax(np.log(fold.prior) + temperature * scores, axis=1)[np.arange(len(scores)), fold.truth]
            for scores, fold in zip(evidence, folds, strict=True)
        ]
        return -float(np.average(np.concatenate(parts), weights=weights))

    if spread == 0.0:
        return 0.0, loss(0.0)
    found = minimize_scalar(
        lambda power: loss(np.exp(power) / spread), bounds=_LOG_TEMPERATURES, method="bounded"
    )
    best = float(np.exp(found.x)) / spread
    return (best, float(found.fun)) if found.fun < loss(0.0) else (0.0, loss(0.0))


def prior_levels(prior: Array, classes: Array, seen: Array, groups: PerRow) -> tuple[Array, float]:
    """Return centered log priors of the training classes, and their mean minus that of the others.

    A class of prior 0, or that is not possible, has the mean.

    prior, classes, seen (C,): of the possible classes; groups (n,): the classes of the rows.
    """
    logs = np.log(np.where(prior > 0, prior / prior.max(), 1.0))
    possible = [kind & (prior > 0) for kind in (seen, ~seen)]
    means = [float(logs[kind].mean()) if kind.any() else 0.0 for kind in possible]
    levels = np.where(prior > 0, logs - means[0], 0.0)
    of_name = {as_text(name): level for name, level in zip(classes.tolist(), levels, strict=True)}
    of_rows = [of_name.get(as_text(name), 0.0) for name in np.unique(groups).tolist()]
    return np.array(of_rows), means[0] - means[1]


def best_penalty(evidence: list[Array], folds: list[EveryClass]) -> float:
    """Find the penalty of the scores of seen classes for the greatest harmonic mean of accuracies.

    The accuracies, averaged by class, are those of rows of seen and of unseen classes among all classes
    (Xian, Lampert, Schiele and Akata 2018); the penalty is the calibrated stacking of Chao et al. 2016.

    evidence (rows, C): log scores of all classes, including priors, for the rows of every fold.
    """
    margins, weights, seen = [], [], []
    for scores, fold in zip(evidence, folds, strict=True):
        lead = [np.where(mask, scores, -np.inf) for mask in (fold.is_seen, ~fold.is_seen)]
        margins.append(lead[0].max(axis=1) - lead[1].max(axis=1))
        of_seen = fold.is_seen[fold.truth]
        found = np.where(of_seen, lead[0].argmax(axis=1), lead[1].argmax(axis=1))
        of_class = np.bincount(fold.truth, fold.weights)[fold.truth]
        weights.append((found == fold.truth) * fold.weights / of_class)
        seen.append(of_seen)
    margin, weight, is_seen = np.concatenate(margins), np.concatenate(weights), np.concatenate(seen)
    order = np.argsort(margin)
    unseen_right = np.append(0.0, np.cumsum(np.where(is_seen, 0.0, weight)[order]))
    seen_right = np.append(0.0, np.cumsum(np.where(is_seen, weight, 0.0)[order]))
    seen_right = seen_right[-1] - seen_right
    n_classes = [sum(int((fold.is_seen == kind).sum()) for fold in folds) for kind in (True, False)]
    a, b = seen_right / n_classes[0], unseen_right / n_classes[1]
    mean = np.divide(2 * a * b, a + b, out=np.zeros_like(a), where=a + b > 0)
    ends = margin[order]
    between = np.concatenate([[ends[0] - 1], (ends[1:] + ends[:-1]) / 2, [ends[-1] + 1]])
    return float(between[mean.argmax()])
