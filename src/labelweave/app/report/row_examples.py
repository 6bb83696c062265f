"""Example rows, and the contributions of their features to the score of a label."""

from __future__ import annotations

import re
from functools import cached_property
from types import SimpleNamespace as Shown
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import logit

from labelweave.app.report.pictures import evenly
from labelweave.app.report.reported_rows import Outcomes, ReportedRows
from labelweave.decisions.automatic.scorers import CombinedScorer
from labelweave.decisions.layers import innermost
from labelweave.estimators import scorers
from labelweave.estimators.scorers import KernelExpansion, KernelScorer
from labelweave.features import FeatureMatrix, Kernel
from labelweave.features.feature_matrix import filled
from labelweave.foundation.array_types import Array
from labelweave.splits.splitters import take_rows

_ROUNDING = 1e-5  # of models with weights in single precision
_CERTAIN = 1e-12
_PARTS = 5  # of each sign
_MOST_LABELS = 6
_WORD = re.compile(r"(\w\w+)")


class Contribution(NamedTuple):
    """The contribution of one feature to a score: its value, as the kernel takes it, times the weight."""

    feature: int
    amount: float


class Explanation(NamedTuple):
    """The margin of a label over its threshold, as a sum.

    ``margin = intercept + sum of contributions + others + calibration - threshold``

    margin: of probabilities in log-odds; positive if the label is predicted.
    intercept: the part common to all rows.
    contributions: of all nonzero features of the row, the largest absolute amounts first.
    others: the part of other labels, in a model that scores them together, and of nonlinear members of a
        combination; otherwise 0.
    calibration: log-odds of the probability minus the score that it was computed from; otherwise 0.
    threshold: of log-odds or scores; 0 if no threshold decides.
    """

    margin: float
    intercept: float
    contributions: list[Contribution]
    others: float
    calibration: float
    threshold: float


class LinearScores:
    """Decisions of a fitted model, decomposed by the weights of the scoring classifier."""

    def __init__(self, classifier: Any) -> None:
        self.classifier = innermost(classifier)
        self.has_probabilities = hasattr(classifier, "predict_proba")

    @property
    def why_not(self) -> str | None:
        """The reason why scores cannot be decomposed, as a sentence; None if they can."""
        inner, kind = self.classifier, type(self.classifier).__name__
        if self._linear_sum is not None or self.members:
            return None
        if hasattr(inner, "support_") or hasattr(inner, "expansion_"):
            return (
                f"The scores of this {kind} are sums of kernels between a row and training rows, so single "
                "features have no contributions that add up to a score."
            )
        if not (hasattr(inner, "feature_factors_") or hasattr(inner, "coef_")):
            return f"{kind} stores no weights of features, so their contributions are not available."
        kernel, width = getattr(inner, "kernel_", None), inner.n_features_in_
        if isinstance(kernel, Kernel) and scorers.explicit_width(kernel, width) != width:
            return f"The weights of this {kind} are of its kernel's explicit features, such as leaves."
        return None

    @cached_property
    def members(self) -> dict[str, tuple[LinearScores, Array]]:
        """The linear members of a combination, by name, with the weights of their scores, (L,)."""
        scorer, found = getattr(self.classifier, "scorer_", None), dict[str, tuple[LinearScores, Array]]()
        if not isinstance(scorer, CombinedScorer):
            return found
        names = [one["name"] for one in self.classifier.members_ if one["weight"]]
        for name, member, slopes in zip(names, scorer.members, scorer.slopes, strict=True):
            plain = Shown(scorer_=member, intercept_=member.intercept_)
            one = LinearScores(getattr(member, "estimator", plain))
            is_score = getattr(member, "response", "decision_function") == "decision_function"
            is_scaled = getattr(one.classifier, "scaling_", None) is not None
            if is_score and hasattr(one.classifier, "scorer_") and not is_scaled and one.why_not is None:
                found[name] = one, self.classifier.calibration_.slopes * slopes
        return found

    @property
    def others(self) -> str:
        """The parts of a score other than the features' contributions and constants, in words."""
        return "nonlinear members, and the other labels" if self.members else "the other labels"

    @cached_property
    def _linear_sum(self) -> tuple[Kernel, list[tuple[KernelExpansion, Any]]] | None:
        """The single linear kernel of a sum over training rows, with its expansion per term."""
        scorer = getattr(self.classifier, "scorer_", None)
        if not isinstance(scorer, KernelScorer) or scorer.support_vectors is None or not scorer.terms:
            return None
        kernel, terms = scorer.terms[0].kernel, list[tuple[KernelExpansion, Any]]()
        for term in scorer.terms:
            if term.kernel is None or kernel is None or repr(term.kernel) != repr(kernel):
                return None
            rows = FeatureMatrix(scorer.support_vectors[term.rows])
            features = kernel.explicit_features(rows)
            if features is None or features.shape[1] != rows.shape[1]:
                return None
            terms.append((term, features.data))
        return None if kernel is None else (kernel, terms)

    def explain(self, row: Any, label: int, number: float, threshold: float | None) -> Explanation:
        """Decompose the decision about a label of one row (1, d).

        number: the model's probability or score.
        threshold: of this number; None if no threshold decides.
        """
        column, sign = label, 1.0
        if self.classifier._form.is_pair:  # the first class has the second's weights, negated
            column, sign = 0, 1.0 if label == 1 else -1.0
        places, values = self._features(row)
        amounts = sign * values * self._weights(column, places)
        known, level = scorers.known_weights(self.classifier, column)
        if known is not None:
            amounts = amounts + sign * values * known[places]
        intercept = sign * (self._constant(column) + level)
        limit = self.classifier._lowest_threshold
        scores = np.reshape(self.classifier.decision_function(row), (1, -1))
        own = intercept + float(amounts.sum())
        others = sign * (float(scores[0, column]) + limit) - own
        others = others if abs(others) > _ROUNDING * (1 + np.abs(amounts).sum()) else 0.0
        order = np.argsort(-np.abs(amounts), kind="stable")
        parts = [Contribution(int(places[k]), float(amounts[k])) for k in order]
        if not self.has_probabilities:
            margin = number - (threshold or 0.0)
            return Explanation(margin, intercept, parts, others, 0.0, own + others - margin)
        taken = 0.0 if threshold is None else _log_odds(threshold)
        odds, limit = _log_odds(number), -_log_odds(0.0)
        calibration = odds - own - others
        is_clipped = abs(odds) >= limit and np.sign(odds) * (own + others) > limit
        calibration = 0.0 if is_clipped or abs(calibration) <= _ROUNDING * (1 + abs(own)) else calibration
        return Explanation(own + others + calibration - taken, intercept, parts, others, calibration, taken)

    def _features(self, row: Any) -> tuple[Array, Array]:
        """Return the indices and values of a row's nonzero features."""
        if (means := getattr(self.classifier, "feature_means_", None)) is not None:
            row = filled(row if sp.issparse(row) else np.asarray(row, np.float64), means)
        features = FeatureMatrix(row).astype(np.float64)
        scaling = getattr(self.classifier, "scaling_", None)
        features = features if scaling is None else scaling(features)
        kernel = self._linear_sum[0] if self._linear_sum else getattr(self.classifier, "kernel_", None)
        explicit = features if kernel is None else kernel.explicit_features(features)
        _, places, values = (features if explicit is None else explicit).sparse_rows(np.float64)
        present = values != 0
        return places[present], values[present]

    def _constant(self, column: int) -> float:
        own = float(self.classifier.intercept_[column])
        if not self.members:
            return own
        curve = self.classifier.calibration_
        parts = (slopes[column] * one._constant(column) for one, slopes in self.members.values())
        return float(curve.slopes[column] * own + curve.intercepts[column] + sum(parts))

    def _weights(self, column: int, places: Array) -> Array:
        if self.members:
            shares = [slopes[column] * one._weights(column, places) for one, slopes in self.members.values()]
            return np.asarray(sum(shares), np.float64)
        if self._linear_sum is not None:
            parts = [
                features[:, places].T @ term.coefficients[:, term.labels == column].sum(axis=1)
                for term, features in self._linear_sum[1]
            ]
            return np.asarray(sum(parts), np.float64)
        if not hasattr(self.classifier, "feature_factors_"):
            return np.asarray(scorers.label_weights(self.classifier, column)[places], np.float64)
        factor = self.classifier.label_factors_[column].astype(np.float64)
        return np.asarray(self.classifier.feature_factors_[places] @ factor)


class RowExamples:
    """Example rows for the page."""

    def __init__(self, rows: ReportedRows, outcomes: Outcomes) -> None:
        self.rows, self.outcomes = rows, outcomes
        self.linear, self._scored = LinearScores(rows.classifier), dict[int, Array]()

    def of_label(self, label: int) -> list[Shown]:
        """Show the row where a label was missed by the largest margin, and the one where it was worst."""
        scores, found = self.outcomes.scores_of(label), []
        for errors, sign in ((self.outcomes.missed, 1.0), (self.outcomes.wrong, -1.0)):
            places = errors[:, [label]].nonzero()[0]
            if len(places):
                found.append(self._example(int(places[np.argmin(sign * scores[places])]), [label]))
        return found

    def across(self, count: int) -> list[Shown]:
        """Show rows from the one with most errors to the one with fewest, at even steps."""
        parts = (self.outcomes.missed, self.outcomes.wrong, self.outcomes.hits)
        missed, wrong, hits = (np.diff(part.indptr) for part in parts)
        order = np.lexsort((-hits, -(missed + wrong)))
        order = order[(missed + wrong + hits)[order] > 0]
        return [self._example(row, self._labels_of(row)) for row in order[evenly(len(order), count)].tolist()]

    def _numbers(self, row: int) -> Array:
        outcomes = self.outcomes
        if not outcomes.is_searched:
            return np.asarray(outcomes.scores[row])
        if row not in self._scored:
            one = take_rows(self.rows.X, outcomes.rows[[row]])
            self._scored[row] = self.rows.classifier.decision_function(one)[0, outcomes.columns]
        return self._scored[row]

    def _labels_of(self, row: int) -> list[int]:
        """Return labels of a row: errors first, then hits, by score."""
        parts = (self.outcomes.missed, self.outcomes.wrong, self.outcomes.hits)
        missed, wrong, hits = (part[[row]].indices for part in parts)
        labels = np.concatenate([missed, wrong, hits])
        is_hit = np.arange(len(labels)) >= len(missed) + len(wrong)
        order = np.lexsort((-self._numbers(row)[labels], is_hit))
        return [int(label) for label in labels[order][:_MOST_LABELS]]

    def _example(self, row: int, labels: list[int]) -> Shown:
        """Return a row's data: texts with highlighted words of a single label, labels, and explanations."""
        number, outcomes = int(self.outcomes.rows[row]), self.outcomes
        explained: list[Explanation | None] = [None] * len(labels)
        if self.linear.why_not is None:
            features = take_rows(self.rows.X, np.array([number]))
            explained = [self._explain(features, row, label) for label in labels]
        only = explained[0] if len(labels) == 1 else None
        return Shown(
            name=self.rows.names[number],
            cells=[(column, self._pieces(column, text, only)) for column, text in self.rows.cells(number)],
            true=self._judged(row, outcomes.truth.positives, "missed", outcomes.missed),
            predicted=self._judged(row, outcomes.predicted, "wrong", outcomes.wrong),
            labels=[self._label(row, label, found) for label, found in zip(labels, explained, strict=True)],
        )

    def _explain(self, features: Any, row: int, label: int) -> Explanation:
        outcomes = self.outcomes
        number, limits = float(self._numbers(row)[label]), outcomes.thresholds
        threshold = None if limits is None else float(limits[label])
        return self.linear.explain(features, int(outcomes.columns[label]), number, threshold)

    def _judged(self, row: int, labels: Any, word: str, errors: Any) -> list[tuple[str, str]]:
        bad = set(errors[[row]].indices.tolist())
        every = sorted(labels[[row]].indices.tolist(), key=lambda label: label not in bad)
        return [(self.outcomes.names[label], word if label in bad else "") for label in every]

    def _label(self, row: int, label: int, explained: Explanation | None) -> Shown:
        """Return a label of a row with its outcome, and the sum of its score if it can be decomposed."""
        words = {"found": self.outcomes.hits, "missed": self.outcomes.missed, "wrong": self.outcomes.wrong}
        limits = self.outcomes.thresholds
        return Shown(
            name=self.outcomes.names[label],
            verdict=next(word for word, matrix in words.items() if label in matrix[[row]].indices),
            number=float(self._numbers(row)[label]),
            threshold=np.nan if limits is None else float(limits[label]),
            total=np.nan if explained is None else explained.margin,
            parts=[] if explained is None else self._parts(explained),
        )

    def _parts(self, explained: Explanation) -> list[Shown]:
        """Return a score as lines: the strongest features for and against, all others, and the constants.

        Their widths are in percent of the longest.
        """
        shown = _strongest(explained)
        rest = [part.amount for part in explained.contributions if part.amount and part not in shown]
        together = "1 other feature" if len(rest) == 1 else f"{len(rest)} other features together"
        lines = [(self._name(c), c.amount, True) for c in shown]
        lines += [(together, sum(rest), False)] if rest else []
        lines += [(self.linear.others, explained.others, False)] if explained.others else []
        lines += [("intercept", explained.intercept, False)]
        beyond = "the other classes" if self.rows.has_classes else "calibration"
        lines += [(beyond, explained.calibration, False)] if explained.calibration else []
        lines += [("minus the threshold", -explained.threshold, False)] if explained.threshold else []
        longest = max(abs(amount) for _, amount, _ in lines) or 1.0
        return [
            Shown(name=name, amount=amount, width=100 * abs(amount) / longest, is_feature=is_feature)
            for name, amount, is_feature in lines
        ]

    def _name(self, part: Contribution) -> str:
        names = self.rows.feature_names
        if names is None:
            return f"feature {part.feature}"
        name = str(names[part.feature])
        columns = self.rows.text_columns
        return name.removeprefix(f"{columns[0]}:") if len(columns) == 1 else name

    def _pieces(self, column: str, text: str, explained: Explanation | None) -> list[tuple[str, str]]:
        """Split a text at the words of features that raised or lowered the label's score."""
        names = self.rows.feature_names
        if column not in self.rows.text_columns or explained is None or names is None:
            return [(text, "")]
        shown = _strongest(explained)
        marks = {str(names[part.feature]): "for" if part.amount > 0 else "against" for part in shown}
        return [(piece, marks.get(f"{column}:{piece.lower()}", "")) for piece in _WORD.split(text) if piece]


def _log_odds(probability: float) -> float:
    """Return finite log-odds, also of probabilities 0 and 1."""
    return float(logit(np.clip(probability, _CERTAIN, 1 - _CERTAIN)))


def _strongest(explained: Explanation) -> list[Contribution]:
    """Return the strongest features: positive ones in descending order, then negative ones."""
    ordered = explained.contributions
    up = [part for part in ordered if part.amount > 0][:_PARTS]
    return up + [part for part in ordered if part.amount < 0][:_PARTS][::-1]
