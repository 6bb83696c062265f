"""Probability maps: one logistic curve per label, or monotone maps.

Platt, "Probabilistic outputs for support vector machines", 1999, minimizes the log loss of ``p(s) = 1 / (1 +
exp(-(a s + b)))`` with targets slightly inside 0 and 1.  All labels of a block take damped Newton steps
together (Lin, Lin and Weng, "A note on Platt's probabilistic outputs", 2007).

Pooled, the curves (a, b) of the labels are draws from one normal distribution, whose mean and covariance are
estimated by expectation maximization with a normal approximation of each label's posterior (empirical Bayes).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from labelweave.foundation.array_types import Array, PerRow
from labelweave.model_files import StoredParameters, storable
from labelweave.model_files.schema import Made, Numbers, places
from labelweave.postprocessing.labeled_scores import LabeledScores, ScoreLines, read_score_table


class LabelCalibration(StoredParameters):
    """A map from scores to probabilities for each label, which model files can store.

    Attributes
    ----------
    n_labels : int
        The number of labels, or of classes.
    """

    n_labels: int

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
            If the scores are not finite numbers, one column per label.
        """
        table = read_score_table(scores)
        if table.shape[1] != self.n_labels:
            raise ValueError(
                f"scores have shape {table.shape}; pass one column for each of {self.n_labels} labels."
            )
        return self._probabilities(table)

    def _probabilities(self, scores: Array) -> Array:
        raise NotImplementedError


_MOST_STEPS = 60
_MOST_HALVINGS = 25
_TINY_CURVATURE = 1e-10
_TOLERANCE = 1e-9
_MOST_ENTRIES = 400_000
_FEWEST_LABELS, _MOST_LABELS = 30, 1000
_MOST_ROUNDS = 30
_CONVERGED = 1e-2
_LEAST_VARIANCE = 1e-4
_WEAK = 0.1  # prior precision of curves of standardized scores


@storable("SigmoidCalibration", {"slopes": Numbers("L"), "intercepts": Numbers("L")})
class SigmoidCalibration(LabelCalibration):
    """A curve ``p = 1 / (1 + exp(-(slope s + intercept)))`` for the scores s of every label.

    Parameters
    ----------
    slopes : ndarray of float64, shape (L,)
        The slopes.
    intercepts : ndarray of float64, shape (L,)
        The intercepts.
    """

    def __init__(self, slopes: Array, intercepts: Array) -> None:
        self.slopes, self.intercepts, self.n_labels = slopes, intercepts, len(slopes)

    def _probabilities(self, scores: Array) -> Array:
        return np.asarray(expit(self.slopes * scores + self.intercepts))


def fit_sigmoid(table: LabeledScores, *, pooled: bool) -> SigmoidCalibration:
    """Fit the curves of all labels, in blocks of labels.

    pooled: whether labels share a prior, and use Platt's targets of all labels together instead of
    their own.
    """
    center, size = scale = _center_and_size(table)
    common = _targets_of_all(table)
    flips = table.labels.flip_probabilities
    is_bounded = flips is None or bool((flips.data >= 0).all())
    # with targets outside 0 and 1 there may be no best curve
    flat = CurvePrior(np.zeros(2), np.eye(2) * (0.0 if is_bounded else _WEAK))
    prior = _learn_prior(table, scale, common) if pooled and is_bounded else flat
    curves = np.empty((table.shape[1], 2))
    for lines in table.label_blocks():
        targets = np.tile(common, (len(lines.signs), 1))
        if not pooled:
            targets = _smoothed_targets(*(counted @ table.weights for counted in _of_both_signs(lines)))
        start = np.tile(prior.mean, (len(targets), 1))
        scaled = _standardized(lines, scale)
        curves[lines.which] = fit_curves(scaled, table.weights, targets, prior, start)[0]
    slopes = curves[:, 0] / size
    return SigmoidCalibration(slopes, curves[:, 1] - slopes * center)


def _center_and_size(table: LabeledScores) -> tuple[float, float]:
    entries, total, _ = _moments(table, 0.0)
    if not entries:
        return 0.0, 1.0
    center = total / entries
    # centered: the difference of large squares would lose small values to rounding
    spread = float(np.sqrt(_moments(table, center)[2] / entries))
    return center, spread if spread > 1e-12 * abs(center) else 1.0


def _moments(table: LabeledScores, center: float) -> tuple[float, float, float]:
    """Return the weighted count of observed entries, and the sums of centered scores and their squares."""
    sums = np.zeros(3)
    for lines in table.row_blocks():
        seen = lines.signs != 0
        away = np.where(seen, lines.scores, center).astype(np.float64) - center
        weights = table.weights[lines.which]
        sums += weights @ seen.sum(axis=1), weights @ away.sum(axis=1), weights @ np.square(away).sum(axis=1)
    entries, total, squares = sums.tolist()
    return entries, total, squares


def _targets_of_all(table: LabeledScores) -> Array:
    """Compute Platt's targets from the rows of all labels together: shape (1, 2)."""
    counts = np.zeros((2, 1))
    for lines in table.row_blocks():
        for number, counted in enumerate(_of_both_signs(lines)):
            counts[number] += counted.sum(axis=1) @ table.weights[lines.which]
    return _smoothed_targets(*counts)


class CurvePrior(NamedTuple):
    """A normal distribution of (slope, intercept): mean (2,), precision matrix (2, 2) or zeros."""

    mean: Array
    precision: Array


class _Fit(NamedTuple):
    """The penalized loss of the curves of a block of labels."""

    lines: ScoreLines
    weights: Array
    targets: Array
    prior: CurvePrior

    def part(self, which: Array) -> _Fit:
        lines = ScoreLines(self.lines.which, self.lines.scores[which], self.lines.signs[which])
        return self._replace(lines=lines, targets=self.targets[which])

    def derivatives(self, curves: Array) -> tuple[Array, Array, Array]:
        """Compute losses (b,), gradients (b, 2) and Hessians (b, 2, 2)."""
        from labelweave.foundation.loops.curve_sums import sigmoid_sums

        sums = np.empty((len(curves), 6))
        sigmoid_sums(self.lines.scores, self.lines.signs, self.weights, curves, self.targets, sums)
        away = curves - self.prior.mean
        pull = away @ self.prior.precision
        hessians = sums[:, [3, 4, 4, 5]].reshape(-1, 2, 2) + self.prior.precision
        return sums[:, 0] + 0.5 * (pull * away).sum(axis=1), sums[:, 1:3] + pull, hessians


def _of_both_signs(lines: ScoreLines) -> tuple[Array, Array]:
    shares = np.clip(lines.shares, 0.0, 1.0)
    return shares, (lines.signs != 0) - shares


def _smoothed_targets(positives: Array, negatives: Array) -> Array:
    """Compute Platt's targets 1 / (N- + 2) of negative and (N+ + 1) / (N+ + 2) of positive rows: (b, 2)."""
    return np.column_stack([1.0 / (negatives + 2.0), (positives + 1.0) / (positives + 2.0)])


def fit_curves(
    lines: ScoreLines, weights: PerRow, targets: Array, prior: CurvePrior, start: Array
) -> tuple[Array, Array]:
    """Minimize the penalized log loss of every label, whose scores should have a size of about 1.

    targets (b, 2): the target probabilities of negative and of positive rows.
    Returns curves (b, 2), and the second derivatives of the penalized loss there, (b, 2, 2).
    """
    whole = _Fit(lines, weights, targets, prior)
    curves = start.astype(np.float64)
    hessians = np.empty((len(curves), 2, 2))
    active = np.arange(len(curves))
    fit, (losses, gradients, seconds) = whole, whole.derivatives(curves)
    for _ in range(_MOST_STEPS):
        hessians[active] = seconds
        directions = _newton_directions(gradients, seconds)
        slopes = (directions * gradients).sum(axis=1)
        going = -slopes > _TOLERANCE * (1.0 + np.abs(losses))
        if not going.any():
            break
        active, fit = active[going], fit.part(going)
        curves[active] = _line_search(fit, curves[active], losses[going], directions[going], slopes[going])
        losses, gradients, seconds = fit.derivatives(curves[active])
    return curves, hessians


def _newton_directions(gradients: Array, hessians: Array) -> Array:
    size = np.trace(hessians, axis1=1, axis2=2) + 1.0
    lifted = hessians + (_TINY_CURVATURE * size)[:, None, None] * np.eye(2)
    return -np.linalg.solve(lifted, gradients[..., None])[..., 0]


def _line_search(fit: _Fit, curves: Array, losses: Array, directions: Array, slopes: Array) -> Array:
    steps = np.ones(len(curves))
    waiting = np.arange(len(curves))
    for _ in range(_MOST_HALVINGS):
        trial = curves[waiting] + steps[waiting, None] * directions[waiting]
        found = fit.part(waiting).derivatives(trial)[0]
        bad = ~(found <= losses[waiting] + 1e-4 * steps[waiting] * slopes[waiting])
        waiting = waiting[bad]
        if not len(waiting):
            break
        steps[waiting] *= 0.5
    else:
        steps[waiting] = 0.0  # at the minimum up to rounding
    return np.asarray(curves + steps[:, None] * directions)


def _learn_prior(table: LabeledScores, scale: tuple[float, float], targets: Array) -> CurvePrior:
    """Learn the prior of the curves of standardized scores, from at most 1,000 labels."""
    part = table.drawn_labels(min(_MOST_ENTRIES, _MOST_LABELS * table.shape[0]), _FEWEST_LABELS)
    blocks = list(part.label_blocks())
    scores, signs = np.concatenate([b.scores for b in blocks]), np.concatenate([b.signs for b in blocks])
    lines = _standardized(ScoreLines(slice(0, len(scores)), scores, signs), scale)
    mean, covariance = _common_curve(lines, table.weights, targets), np.eye(2)
    curves, targets = (np.tile(one, (len(lines.scores), 1)) for one in (mean, targets))
    for _ in range(_MOST_ROUNDS):
        prior = CurvePrior(mean, np.linalg.inv(covariance))
        curves, hessians = fit_curves(lines, table.weights, targets, prior, curves)
        before, mean = mean, curves.mean(axis=0)
        away = curves - mean
        covariance = away.T @ away / len(curves) + np.linalg.inv(hessians).mean(axis=0)
        covariance += _LEAST_VARIANCE * np.eye(2)
        if np.abs(mean - before).max() < _CONVERGED * (1.0 + np.abs(mean).max()):
            break
    return CurvePrior(mean, np.linalg.inv(covariance))


def _standardized(lines: ScoreLines, scale: tuple[float, float]) -> ScoreLines:
    """Subtract the center of scores and divide by their size; unobserved ones become 0."""
    center, size = scale
    scores = np.where(lines.signs == 0, 0.0, (lines.scores - center) / size)
    return ScoreLines(lines.which, scores, lines.signs)


def _common_curve(lines: ScoreLines, weights: Array, targets: Array) -> Array:
    every = ScoreLines(slice(0, 1), lines.scores.reshape(1, -1), lines.signs.reshape(1, -1))
    weak = CurvePrior(np.zeros(2), 1e-3 * np.eye(2))
    weights = np.tile(weights, len(lines.scores))
    return np.asarray(fit_curves(every, weights, targets, weak, np.zeros((1, 2)))[0][0])


_LOG_ODDS_BINS = np.linspace(-20.0, 20.0, 4001)


def _is_divided(state: dict[str, Any]) -> bool:
    """Return whether every label has knots, its own or shared ones, with ascending scores."""
    starts, scores = state["starts"], state["scores"]
    if len(starts) != state["curves"].n_labels + 2 or starts[0] != 0 or starts[-1] != len(scores):
        return False
    counts = np.diff(starts.astype(np.int64))
    within = np.ones(max(0, len(scores) - 1), bool)
    within[starts[(starts > 0) & (starts < len(scores))].astype(np.int64) - 1] = False
    return bool(
        (counts >= 0).all() and (counts[:-1].all() or counts[-1]) and (np.diff(scores)[within] >= 0).all()
    )


@storable(
    "IsotonicCalibration",
    {
        "starts": places("s"),
        "scores": Numbers("k"),
        "values": Numbers("k", least=0, most=1),
        "curves": Made(SigmoidCalibration),
    },
    {"every label has knots with rising scores": _is_divided},
)
class IsotonicCalibration(LabelCalibration):
    """Monotone maps from scores to probabilities, linear between knots and constant outside them.

    Parameters
    ----------
    starts : ndarray of int64, shape (L + 2,)
        The first knot of every label; the last segment is the map that rare labels share.
    scores : ndarray of float64, shape (k,)
        The knots; those of the shared map are log-odds.
    values : ndarray of float64, shape (k,)
        The probabilities at the knots.
    curves : SigmoidCalibration
        Curves from scores to log-odds, for rare labels, which have no knots of their own.
    """

    def __init__(self, starts: Array, scores: Array, values: Array, curves: SigmoidCalibration) -> None:
        self.starts, self.scores, self.values, self.curves = starts, scores, values, curves
        self.n_labels = curves.n_labels

    @property
    def is_shared(self) -> Array:
        """Whether each label uses the shared map, shape (L,)."""
        return np.asarray(np.diff(self.starts)[:-1] == 0)

    def _probabilities(self, scores: Array) -> Array:
        result = np.empty(scores.shape)
        shared = np.flatnonzero(self.is_shared)
        log_odds = self.curves.slopes[shared] * scores[:, shared] + self.curves.intercepts[shared]
        result[:, shared] = self._interpolated(len(self.starts) - 2, log_odds)
        for label in np.flatnonzero(~self.is_shared).tolist():
            result[:, label] = self._interpolated(label, scores[:, label])
        return result

    def _interpolated(self, number: int, scores: Array) -> Array:
        knots = slice(self.starts[number], self.starts[number + 1])
        return np.interp(scores, self.scores[knots], self.values[knots])


def fit_isotonic(table: LabeledScores, min_positives: int) -> IsotonicCalibration:
    """Fit a monotone map to every label by least squares, and one to all labels with too few positive rows.

    min_positives: labels with fewer positive, or fewer negative, rows share a map of the log-odds of their
        logistic curves, which are comparable between labels, unlike scores.
    """
    curves = fit_sigmoid(table, pooled=True)
    knots = []
    counts = np.zeros((2, len(_LOG_ODDS_BINS) + 1))  # of rows and of positive rows
    for lines in table.label_blocks():
        for number, label in enumerate(range(lines.which.start, lines.which.stop)):
            seen = (lines.signs[number] != 0) & (table.weights > 0)
            hit, weights = lines.shares[number][seen].astype(np.float64), table.weights[seen]
            scores = lines.scores[number][seen].astype(np.float64)
            if min(hit.sum(), len(hit) - hit.sum()) >= min_positives:
                knots.append(_rising_map(scores, hit, weights))
            else:
                knots.append((np.empty(0), np.empty(0)))
                log_odds = curves.slopes[label] * scores + curves.intercepts[label]
                place = np.searchsorted(_LOG_ODDS_BINS, log_odds)
                counts[0] += np.bincount(place, weights, minlength=counts.shape[1])
                counts[1] += np.bincount(place, weights * hit, minlength=counts.shape[1])
    knots.append(_shared_map(counts))
    starts = np.concatenate([[0], np.cumsum([len(scores) for scores, _ in knots])])
    scores, values = (np.concatenate(column) for column in zip(*knots, strict=True))
    return IsotonicCalibration(starts, scores, values, curves)


def _shared_map(counts: Array) -> tuple[Array, Array]:
    filled = np.flatnonzero(counts[0])
    if not len(filled):
        return np.zeros(1), np.full(1, 0.5)
    width = _LOG_ODDS_BINS[1] - _LOG_ODDS_BINS[0]
    centers = np.append(_LOG_ODDS_BINS, _LOG_ODDS_BINS[-1] + width)[filled] - 0.5 * width
    return _rising_map(centers, counts[1, filled] / counts[0, filled], counts[0, filled])


def _rising_map(scores: Array, targets: Array, weights: Array) -> tuple[Array, Array]:
    """Fit a monotone map, with the distance from 0 and 1 of Platt's targets."""
    from sklearn.isotonic import IsotonicRegression

    rows = float(weights.sum())
    least = 1.0 / (rows + 2.0)
    found = IsotonicRegression(y_min=least, y_max=1.0 - least).fit(scores, targets, weights)
    return found.X_thresholds_.astype(np.float64), found.y_thresholds_.astype(np.float64)
