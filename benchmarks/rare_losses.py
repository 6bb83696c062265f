"""Losses for rare labels that users of neural networks know, in linear and low-rank models.

With p the probability of a label's own value: the logistic loss ``-log p``, with or without balanced class
weights, the focal loss ``-(1 - p)^g log p`` (Lin et al., ICCV 2017) and the asymmetric one, focal for
negatives alone, whose probability of being right is first raised by 0.05 (Ridnik et al., ICCV 2021).  Linear
models are minimized by L-BFGS from weights of zero, with half the squared weights as the penalty; low-rank
ones are ``LowRankClassifier`` with each loss as one of a user's own.

Three folds of at most 2,000 rows: means, and gains over the logistic loss with standard errors.  Penalty and
exponent (by mean average precision) and thresholds (by F1) are chosen on out-of-fold rows of training folds.
"""

from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.metrics import average_precision_score, precision_recall_curve
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from benchmarks.frame import RESULTS, RecordedRuns, command, groups, markdown, several
from benchmarks.problems import read_parts, stacked
from labelweave import LowRankClassifier
from labelweave.metrics import f1_score
from labelweave.testing import EntryLoss

_ROWS, _RANK, _STEPS = 2000, 10, 80
_PENALTIES = (0.001, 0.01, 0.1, 1.0, 3.0, 10.0, 30.0)


@dataclass(frozen=True)
class Loss(EntryLoss):
    """The exponents of positives and negatives, and what is taken off the probability of negatives."""

    positive: float = 0.0
    negative: float = 0.0
    shift: float = 0.0
    is_balanced: bool = False
    is_convex = False

    def of(self, signs: Any, scores: Any) -> tuple[Any, Any]:
        """Return losses and their derivatives by the scores."""
        is_on = signs > 0
        right = expit(signs * scores)
        slope = signs * right * (1.0 - right)
        shifted = np.where(is_on, right, np.minimum(1.0, right + self.shift))
        slope = np.where(shifted < 1.0, slope, 0.0)
        g = np.where(is_on, self.positive, self.negative)
        wrong, logs = np.maximum(1.0 - shifted, 1e-12), np.log(np.maximum(shifted, 1e-12))
        return -(wrong**g) * logs, slope * wrong**g * (g * logs / wrong - 1.0 / np.maximum(shifted, 1e-12))

    def value(self, signs: Any, scores: Any) -> Any:
        return self.of(signs, scores)[0]

    def gradient(self, signs: Any, scores: Any) -> Any:
        return self.of(signs, scores)[1]

    def curvature(self, signs: Any, scores: Any) -> Any:
        ahead, behind = (self.gradient(signs, scores + step) for step in (1e-5, -1e-5))
        return np.maximum((ahead - behind) / 2e-5, 0.0)

    def conjugate(self, signs: Any, gradients: Any) -> Any:
        return np.full_like(gradients, np.nan)


_LOSSES = {
    "logistic": [Loss()],
    "logistic, balanced": [Loss(is_balanced=True)],
    "focal": [Loss(1.0, 1.0), Loss(2.0, 2.0)],
    "asymmetric": [Loss(0.0, 2.0, 0.05), Loss(0.0, 4.0, 0.05)],
}


def fit(X: Any, signs: Any, loss: Loss, penalty: float, kind: str) -> Any:
    """Return the weights (d, L) of least penalized loss."""
    if kind == "low rank":
        own, weight = loss if loss.negative else "log_loss", "balanced" if loss.is_balanced else None
        model = LowRankClassifier(_RANK, own, penalty, fit_intercept=False, class_weight=weight)
        return model.fit(X, signs > 0).coef_.T
    shares = (signs > 0).mean(axis=0).clip(1.0 / len(signs), 1.0 - 1.0 / len(signs))
    weights = np.where(signs > 0, 0.5 / shares, 0.5 / (1.0 - shares)) if loss.is_balanced else 1.0

    def objective(free: Any) -> tuple[float, Any]:
        losses, slopes = loss.of(signs, X @ free.reshape(X.shape[1], -1))
        value = float((weights * losses).sum() + penalty / 2 * free @ free)
        return value, np.ravel(X.T @ (weights * slopes)) + penalty * free

    start = np.zeros(X.shape[1] * signs.shape[1])
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
    return found.x.reshape(X.shape[1], -1)


def mean_precision(truth: Any, scores: Any) -> float:
    seen = [label for label in range(truth.shape[1]) if 0 < truth[:, label].sum() < len(truth)]
    return float(np.mean([average_precision_score(truth[:, label], scores[:, label]) for label in seen]))


def best_threshold(truth: Any, scores: Any) -> float:
    """Return the score above which a label's F1 is the largest; infinity for a label without rows."""
    if not truth.any():
        return np.inf
    precision, recall, levels = precision_recall_curve(truth, scores)
    top = int(np.argmax(2 * precision * recall / np.maximum(precision + recall, 1e-12)))
    return float(np.nextafter(levels[min(top, len(levels) - 1)], -np.inf))


def measure(X: Any, Y: Any, fold: tuple[Any, Any], name: str, model: str) -> dict[str, Any]:
    train, test = fold
    X = scaled(X, train)
    signs, inner = 2 * Y - 1, KFold(2, shuffle=True, random_state=1)
    best: tuple[float, Any, Any] = (-1.0, None, None)
    for loss in _LOSSES[name]:
        for penalty in _PENALTIES[3 * (model == "low rank") :]:  # weak ones take minutes
            scores = np.empty((len(train), Y.shape[1]))
            for one, other in inner.split(train):
                weights = fit(X[train[one]], signs[train[one]], loss, penalty, model)
                scores[other] = X[train[other]] @ weights
            if (value := mean_precision(Y[train], scores)) > best[0]:
                best = value, (loss, penalty), scores
    (loss, penalty), scores = best[1:]
    levels = [best_threshold(Y[train, label], scores[:, label]) for label in range(Y.shape[1])]
    found = X[test] @ fit(X[train], signs[train], loss, penalty, model)
    sets = (found > levels).astype(int)
    return {
        "chosen": [*astuple(loss), penalty],
        "mean average precision": mean_precision(Y[test], found),
        "macro-F1": float(f1_score(Y[test], sets, average="macro")),
    }


def read(name: str) -> tuple[Any, Any]:
    """Return at most 2,000 rows, drawn at random."""
    X, Y = stacked(read_parts(name))
    rows = np.random.default_rng(0).permutation(len(Y))[:_ROWS]
    return X[rows], Y[rows].to_dense().astype(int)


def scaled(X: Any, train: Any) -> Any:
    """Standardize by the training rows, to rows of mean squared length 1, with a constant."""
    is_sparse = sp.issparse(X)
    X = StandardScaler(with_mean=not is_sparse).fit(X[train]).transform(X) / np.sqrt(X.shape[1])
    ones = np.ones((X.shape[0], 1))
    return sp.csr_array(sp.hstack([X, ones])) if is_sparse else np.hstack([X, ones])


def lines(runs: list[dict[str, Any]]) -> list[str]:
    found, keys, cell = [], ["mean average precision", "macro-F1"], "{:.3f}, {:+.3f} ± {:.3f}".format
    for (name, model), own in groups(runs, "set", "model").items():
        of = {one: np.array([[run[k] for k in keys] for run in own if run["loss"] == one]) for one in _LOSSES}
        for loss in (loss for loss in _LOSSES if len(of[loss]) == len(of["logistic"]) > 1):
            gains = of[loss] - of["logistic"]
            errors = gains.std(axis=0, ddof=1) / len(gains) ** 0.5
            found.append([name, model, loss, *map(cell, of[loss].mean(axis=0), gains.mean(axis=0), errors)])
    return markdown(("set", "model", "loss", *keys), found)


@command(
    sets=several(("birds", "scene", "yeast", "emotions", "tmc2007", "enron")),
    models=several(("linear", "low rank")),
    losses=several(_LOSSES),
    records=RESULTS / "rare_losses.json",
)
def main(arguments: Any) -> None:
    record = RecordedRuns(arguments)
    for name in arguments.sets:
        X, Y = read(name)
        folds = list(KFold(3, shuffle=True, random_state=0).split(Y))
        for case in record.missing(set=[name], model=arguments.models, loss=arguments.losses, fold=range(3)):
            record.add(case, measure(X, Y, folds[case["fold"]], case["loss"], case["model"]))
            record.show("\n".join(lines([run for run in record.runs if run["set"] == name])))
