"""The prior from label texts, with its strengths chosen on out-of-fold rows.

Log-odds of labels without observed values are too low: observed labels are mostly rarer than the mean,
their functions reflect this, and related labels inherit it.  The bias is estimated on labels that are held
out together with rows (:meth:`PriorTask.unseen_shift`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.base import clone

from labelweave.decisions.label_scores import TrainingRows
from labelweave.estimators import MaxMarginClassifier
from labelweave.features import FeatureMatrix
from labelweave.foundation.array_types import Array
from labelweave.labels import LabelCovariance, LabelMatrix, LabelMean, LabelText, Taxonomy
from labelweave.labels.text.label_text import TextScores
from labelweave.model_files import StoredParameters, storable
from labelweave.model_files.schema import Number, Optional
from labelweave.problems.hyperparameters.label_prior import OutOfFoldRows, base_rates, ranks_better
from labelweave.splits.splitters import take_rows

_SHARES, _WIDTHS, _TREE_SHARES = (0.4, 0.8), (0.5, 0.7), (0.5, 1.0)
_MOST_LABELS = 1000  # to choose a prior on
_MARGIN = 0.5  # scores of margins per log-odds
_PARTS = 4  # folds of rows and labels held out together
_SCALE_ROWS, _FEWEST_HELD, _SCALE_FACTORS, _SCALE_TOL = 600, 5, (1.0, 3.0, 10.0), 1e-2


@storable(
    "TextPrior",
    {
        **{name: Number(0) for name in ("mean", "scale")},
        **{name: Number(0, 1) for name in ("share", "tree_share")},
        "width": Number(1e-9),
        "level": Number(),
        "unseen": Optional(Number()),
    },
)
@dataclass(frozen=True)
class TextPrior(StoredParameters):
    """The strengths of the parts of a prior.

    mean: the standard deviation of known scores, in log-odds; 0 for no mean.
    level: the log-odds of a label of average similarity.
    share, width: of the covariance of texts; a share of 0 is independent labels.
    tree_share: the taxonomy's part of the covariance.
    scale: the prior variance of scores.
    unseen: the amount added to the log-odds of labels without observed values.
    """

    mean: float = 0.0
    level: float = 0.0
    share: float = 0.0
    width: float = _WIDTHS[-1]
    tree_share: float = 0.0
    scale: float = 1.0
    unseen: float = 0.0

    def covariance(self, text: LabelText, taxonomy: Taxonomy | None) -> LabelCovariance:
        if self.share == 0:
            return LabelCovariance.identity(len(text), text.names)
        tree = self.tree_share
        found: LabelCovariance = text.covariance(self.share, self.width).scaled(1.0 - tree)
        if tree == 0 or taxonomy is None:
            return found
        above = LabelCovariance.from_taxonomy(taxonomy, text.names, normalized=True)
        own = LabelCovariance.identity(len(text), text.names).scaled(tree * (1.0 - self.share))
        return found + above.scaled(tree * self.share) + own

    def known_scores(self, scores: TextScores, text: LabelText, estimator: Any) -> LabelMean:
        """Return the mean on the scale of an estimator: log-odds, margins, or shares of rows."""
        loss = getattr(estimator, "loss", "hinge" if isinstance(estimator, MaxMarginClassifier) else None)
        if loss in ("hinge", "squared_hinge"):
            level = float(np.clip(_MARGIN * self.level, -1.0, 1.0))
            return scores.mean(text, _MARGIN * self.mean, level)
        if loss == "squared_error":  # slope of a share by log-odds at the level
            share = float(expit(self.level))
            return scores.mean(text, share * (1.0 - share) * self.mean, share)
        return scores.mean(text, self.mean, self.level)


@dataclass(frozen=True)
class PriorTask:
    """The data to choose a prior from: texts of the scored columns; ``scores`` None for no mean."""

    features: FeatureMatrix
    data: TrainingRows
    text: LabelText
    scores: TextScores | None
    taxonomy: Taxonomy | None
    seed: int

    def _rows(self, most: int) -> Array:
        weights, n_rows = self.data.weights, len(self.features)
        rows = np.arange(n_rows) if weights is None else np.flatnonzero(weights)
        return np.random.default_rng(self.seed).permutation(rows)[:most]

    def choose(self, most_rows: int, mean: float | None, *, covaries: bool) -> TextPrior:
        """Choose all strengths on at most this many out-of-fold rows; that of the mean only if it is None."""
        rows, labels = np.sort(self._rows(most_rows)), self.data.labels.most_likely()
        columns = np.random.default_rng(self.seed).permutation(seen_labels(self.data))
        columns = np.sort(columns[:_MOST_LABELS])
        some, table = self.features.rows(rows).data, labels[rows].select_labels(columns).to_dense()
        targets = np.where(np.isnan(table), np.nan, table > 0)
        product = some @ some.T
        gram = np.asarray(product.toarray() if sp.issparse(product) else product, np.float64)
        overall = float(base_rates(targets).mean())
        text, known = self.text.columns(columns), None
        if self.scores is not None and mean is None:
            known = self.scores.mean(text, 1.0, 0.0).scores(some)
        elif self.scores is None:
            mean = 0.0
        candidates = self._candidates() if covaries else [TextPrior()]
        covariances = [one.covariance(text, self.taxonomy) for one in candidates]
        data = gram, targets, known
        found = OutOfFoldRows(*data).choose(covariances)
        best, alone = found[0], next(one for one in found if one.number == 0)
        choices = (best, covariances[best.number]), (alone, covariances[0])
        if best.number and not ranks_better(*choices, data, self.seed):
            best = alone
        return replace(
            candidates[best.number],
            mean=best.strength if mean is None else mean,
            level=float(np.log(overall / (1.0 - overall))),
            scale=best.scale,
        )

    def _candidates(self) -> list[TextPrior]:
        trees = (0.0,) if self.taxonomy is None else (0.0, *_TREE_SHARES)
        return [TextPrior()] + [
            TextPrior(share=share, width=width, tree_share=tree)
            for share in _SHARES
            for tree in trees
            for width in (_WIDTHS if tree < 1 else _WIDTHS[-1:])
        ]

    def with_fitted_scale(self, prior: TextPrior, estimator: Any) -> TextPrior:
        """Choose the scale by fits of an estimator to a part of the rows, starting from the closed form.

        The closed form linearizes the logistic loss, and shrinks large scores too much.
        """
        held, kept = self._scale_rows()
        if len(held) < _FEWEST_HELD:
            return prior
        table = self.features.data
        truth = self.data.labels[held].most_likely().to_dense()
        losses = {}
        for factor in _SCALE_FACTORS:
            part = clone(estimator).set_params(scale=factor * prior.scale, tol=_SCALE_TOL)
            part.fit(table[kept], take_rows(self.data.y, kept))
            scores = part.decision_function(table[held]).reshape(truth.shape)
            losses[factor] = np.logaddexp(0.0, np.where(truth > 0, -scores, scores))[~np.isnan(truth)].sum()
        return replace(prior, scale=prior.scale * min(losses, key=losses.__getitem__))

    def _scale_rows(self) -> tuple[Array, Array]:
        """Hold out a quarter of some rows, but no row that is the last of its class."""
        rows = self._rows(_SCALE_ROWS)
        is_held = np.arange(len(rows)) < len(rows) // 4
        if not isinstance(self.data.y, LabelMatrix):
            signs = self.data.labels[rows].to_signs()[:, 0]
            for sign in (-1, 1):
                if not (signs[~is_held] == sign).any():
                    is_held &= signs != sign
        return np.sort(rows[is_held]), np.sort(rows[~is_held])

    def unseen_shift(self, estimator: Any) -> float:
        """Estimate the bias of log-odds of labels without observed values, on held-out labels.

        A fit to the other rows and labels scores each part of the labels on a part of the rows; the shift is
        the most likely one with a standard normal prior.
        """
        random, labels = np.random.default_rng(self.seed), self.data.labels
        rows, seen = self._rows(_SCALE_ROWS), seen_labels(self.data)
        if min(len(rows), len(seen)) < _PARTS * _FEWEST_HELD:
            return 0.0
        part_of_row, part_of_label = np.arange(len(rows)) % _PARTS, np.full(labels.n_labels, -1)
        part_of_label[random.permutation(seen)] = np.arange(len(seen)) % _PARTS
        scores, truth = [], []
        for part in range(_PARTS):
            kept, held = np.sort(rows[part_of_row != part]), np.sort(rows[part_of_row == part])
            fitted = clone(estimator).set_params(tol=_SCALE_TOL)
            fitted.fit(self.features.data[kept], _without(labels[kept], part_of_label == part))
            columns = np.flatnonzero(part_of_label == part)
            known = labels[held].select_labels(columns).to_dense()
            observed = ~np.isnan(known)
            scores.append(fitted.decision_function(self.features.data[held])[:, columns][observed])
            truth.append(known[observed])  # the expectation, for probabilities
        log_odds, n_positive = np.concatenate(scores), float(np.concatenate(truth).sum())
        most = len(log_odds) + 1.0
        return float(brentq(lambda a: expit(log_odds + a).sum() - n_positive + a, -most, most))


def seen_labels(data: TrainingRows) -> Array:
    """Return the indices of the labels with an observed value in a row of positive weight."""
    labels = data.labels if data.weights is None else data.labels[np.flatnonzero(data.weights)]
    return np.flatnonzero(labels.observed_counts())


def _without(labels: LabelMatrix, hidden: Array) -> LabelMatrix:
    kept = labels.observed_pattern().multiply((~hidden).astype(np.int8)[None, :])
    return labels.masked(sp.csr_array(kept) != 0)
