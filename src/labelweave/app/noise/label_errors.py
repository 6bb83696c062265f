"""Labels that are probably recorded wrongly, with reasons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from labelweave.app.noise.noisy_curves import NoisyCurves, fit_noisy_curves
from labelweave.app.noise.related_labels import RelatedLabels, label_strengths, relate_labels
from labelweave.decisions.automatic import LARGEST_TABLE, AutoLabelClassifier
from labelweave.decisions.label_scores import rows_of, targets_for
from labelweave.foundation.arguments import checked, shown
from labelweave.foundation.array_types import Array, Floats, PerRow, RowsByLabels
from labelweave.foundation.arrays import checked_csr, numbers_of
from labelweave.foundation.sklearn_compat import _safe_split
from labelweave.labels import LabelMatrix
from labelweave.labels.flip_rates import FlipRates, read_flip_rates
from labelweave.labels.label_names import columns_by_name
from labelweave.labels.targets import check_lengths, has_many_labels
from labelweave.metrics.known_labels import label_scores
from labelweave.splits.splitters import folds_of

_LEAST_PROBABILITY = 1e-4


def out_of_fold_scores(
    estimator: Any, X: Any, labels: LabelMatrix, folds: PerRow, tell: Callable[[str], object]
) -> RowsByLabels:
    """Fit an estimator to all folds but one, in turn, and score that one; an automatic model has its own.

    Raises ValueError if X and labels differ in rows, or the estimator lacks one score per label.
    Returns scores (n, L); probabilities as log-odds.
    """
    X = checked_csr(X, "X") if sp.issparse(X) else X
    check_lengths(rows_of(X), len(labels))
    if isinstance(estimator, AutoLabelClassifier):
        tell("fitting AutoLabelClassifier")
        scores = clone(estimator).fit(X, labels)._out_of_fold_probabilities()
    else:
        scores, n_folds = np.empty(labels.shape), int(folds.max()) + 1
        for fold in range(n_folds):
            tell(f"fitting {type(estimator).__name__}, fold {fold + 1} of {n_folds}")
            train, held = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            model = clone(estimator)
            X_train = _safe_split(model, X, None, train)[0]
            model.fit(X_train, targets_for(model, labels[train]))
            X_held = _safe_split(model, X, None, held, train)[0]
            scores[held] = label_scores(model, X_held, labels.n_labels)
    return as_log_odds(scores)


def as_log_odds(scores: RowsByLabels) -> RowsByLabels:
    """Convert probabilities to log-odds; keep scores if some are not probabilities."""
    if scores.size and (scores.min() < 0.0 or scores.max() > 1.0):
        return scores
    return np.asarray(np.log(scores + _LEAST_PROBABILITY) - np.log1p(_LEAST_PROBABILITY - scores))


_FOLDS = 5
_MOST_LABELS = 1000  # for a matrix of labels by labels per fold
_FEWEST_ROWS = 10


class Reason(NamedTuple):
    """The effect of another label of the row.

    Parameters
    ----------
    name : str
        The name of the other label.
    probability : float
        The probability that the other label is present.
    effect : float
        Its contribution to the expected value of the label in question, negative if it contradicts it.
    """

    name: str
    probability: float
    effect: float


@dataclass(frozen=True)
class LabelErrors:
    """Entries of a label matrix that are probably wrong, the most likely first.

    Parameters
    ----------
    rows, labels : ndarray of int, shape (m,)
        The places of the entries.
    recorded : ndarray of bool, shape (m,)
        Whether the label is recorded as present.
    probability : ndarray of float64, shape (m,)
        The probability that the entry is wrong.
    alone : ndarray of float64, shape (m,)
        The probability by the label's own scores, without the other labels of the row.
    expected : float
        The expected number of wrong entries among the observed ones: the sum of the probabilities.
    flip_rates : FlipRates
        The given or estimated rates.
    probabilities : ndarray of float64, shape (n, L)
        The probability of every entry that the label is present, given the recorded labels.
    names : ndarray of str, shape (L,)
        The names of the labels.
    _findings : record
        Data for further rankings.
    """

    rows: Array
    labels: Array
    recorded: Array
    probability: Floats
    alone: Floats
    expected: float
    flip_rates: FlipRates
    probabilities: RowsByLabels
    names: Array
    _findings: _Findings = field(repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        n, n_labels = self.probabilities.shape
        size = f"{len(self)} entries of {n} rows, {n_labels} labels; {self.expected:.3g} expected"
        return "\n  ".join([f"LabelErrors({size})", *map(self.words, range(min(len(self), 10)))])

    def ranked(self, top: int) -> LabelErrors:
        """Return the findings with more entries, or fewer.

        Parameters
        ----------
        top : int
            Maximum number of entries to rank, 0 or more.

        Returns
        -------
        LabelErrors
            The same findings with this many entries.
        """
        if not (_is_whole(top) and top >= 0):
            raise ValueError(f"top is {shown(top)}; use the number of entries to rank, 0 or more.")
        return self._findings.ranked(int(top))

    def words(self, place: int) -> str:
        """Describe an entry in one line, with the reasons why it is probably wrong.

        Parameters
        ----------
        place : int
            The position of the entry in the ranking, from 0.

        Returns
        -------
        str
            The line.
        """
        reasons = ", ".join(
            f"{one.name} {'present' if one.probability > 0.5 else 'absent'} ({one.effect:+.2g})"
            for one in self.reasons(place)
        )
        recorded = "recorded" if self.recorded[place] else "not recorded"
        return (
            f"row {self.rows[place]}, {str(self.names[self.labels[place]])!r} {recorded}: wrong with "
            f"probability {self.probability[place]:.2f}, by its own scores {self.alone[place]:.2f}"
            + (f"; {reasons}" if reasons else "")
        )

    def reasons(self, place: int, most: int = 3) -> list[Reason]:
        """Return the other labels of the row that most contradict the recorded value.

        Parameters
        ----------
        place : int
            The position of the entry in the ranking, from 0.
        most : int, default=3
            Maximum number of labels to return.

        Returns
        -------
        list of Reason
            Those that contradict it, the strongest first; none if labels are unrelated.
        """
        if not (_is_whole(place) and -len(self) <= place < len(self)):
            raise ValueError(f"place is {place!r}; use a whole number below the {len(self)} entries.")
        if not (_is_whole(most) and most >= 0):
            raise ValueError(f"most is {most!r}; use a whole number, 0 or more.")
        related = self._findings.related
        if related is None:
            return []
        effects = related.effects(int(self.rows[place]), int(self.labels[place]))
        against = -effects if self.recorded[place] else effects
        found = [label for label in np.argsort(-against, kind="stable")[:most] if against[label] > 0]
        known = related.known[self.rows[place]]
        return [Reason(str(self.names[k]), float(known[k]), float(effects[k])) for k in found]

    def records(self, most_reasons: int = 3) -> list[dict[str, Any]]:
        """Return the entries as dictionaries, for DataFrames and files.

        Parameters
        ----------
        most_reasons : int, default=3
            Maximum number of other labels to list with each.

        Returns
        -------
        list of dict
            ``row``, ``label``, ``recorded``, ``probability``, ``alone`` and ``reasons``, a dict of effects.
        """
        return [
            {
                "row": int(self.rows[place]),
                "label": str(self.names[self.labels[place]]),
                "recorded": bool(self.recorded[place]),
                "probability": float(self.probability[place]),
                "alone": float(self.alone[place]),
                "reasons": {one.name: one.effect for one in self.reasons(place, most_reasons)},
            }
            for place in range(len(self))
        ]

    @checked
    def corrected(self, least: float = 0.5, how: Literal["hide", "flip", "soft"] = "hide") -> LabelMatrix:
        """Return the labels without the entries that are probably wrong, or all as probabilities.

        Parameters
        ----------
        least : float, default=0.5
            Entries that are wrong with at least this probability are corrected.
        how : {"hide", "flip", "soft"}, default="hide"
            Whether such entries become unobserved, or the opposite of the recorded value; or whether all
            entries, whatever ``least`` is, become probabilities, given the recorded labels.

        Returns
        -------
        LabelMatrix
            The labels of all rows.
        """
        if not 0 <= least <= 1:
            raise ValueError(f"least is {least}; use a probability, from 0 to 1.")
        if how not in ("hide", "flip", "soft"):
            raise ValueError(f"how is {how!r}; use 'hide', 'flip' or 'soft'.")
        labels = self._findings.labels
        if how == "soft":
            known = np.where(np.isnan(self._findings.targets), np.nan, np.clip(self.probabilities, 0.0, 1.0))
            return LabelMatrix.from_probabilities(known, labels.names)
        signs = labels.to_signs()
        wrong = (signs != 0) & (np.abs(self.probabilities - (signs > 0)) >= least)
        signs[wrong] = 0 if how == "hide" else -signs[wrong]
        observed = sp.csr_array(signs != 0) if (signs == 0).any() else None
        return LabelMatrix(sp.csr_array(signs > 0), observed, labels.names)


@checked
def find_label_errors(
    X: Any, y: Any, *, scores: Any = None, flip_rates: Any = None, related: Any = True,
    random_state: int = 0, on_progress: Callable[[str], object] | None = None,
) -> LabelErrors:  # fmt: skip
    """Find the entries of a label matrix that are probably wrong, by out-of-fold scores and related labels.

    1.  Every row is scored out of fold.
    2.  One logistic curve per label between a floor and a ceiling models the true labels and their flip rates
        (class-conditional noise, Natarajan et al. 2013), by maximum likelihood.
    3.  Ridge regressions predict the residuals of every label from the other labels of the row, as
        recorded or by their probabilities, whichever predicts other folds better; no label predicts
        itself.  Labels selected by ``related`` come first.
    4.  Curves are fitted to scores and these predictions together, and Bayes' rule yields the
        probability that an entry is wrong, given the recorded value.

    Parameters
    ----------
    X : {array-like, sparse matrix, DataFrame} of shape (n, d), or None
        The rows; None if ``scores`` are an array.
    y : array-like of shape (n, L), sparse matrix, DataFrame, LabelMatrix or list of tags
        The labels as recorded; unobserved entries are skipped.
    scores : classifier or array-like of shape (n, L), default=None
        Any multi-label classifier, whose clones are fitted to five folds; or out-of-fold scores or
        probabilities of all rows, such as those of scikit-learn's ``cross_val_predict``.  By default an
        :class:`AutoLabelClassifier`, with its own out-of-fold probabilities.
    flip_rates : FlipRates or (missed, false), default=None
        Known rates: of present labels recorded as absent, and of absent ones recorded as present.  Each is
        one number, one per label, or None to estimate it; ``(None, 0)`` means that labels are only missed.
    related : bool, LabelCovariance, Taxonomy, CliqueGraph or array-like of shape (L, L), default=True
        Whether labels inform each other; not above 1,000 labels or below 10 rows.  A structure selects the
        labels to use first: those of large correlations, of either sign, or in the same clique.  It has no
        effect if it does not make the recorded labels more likely.
    random_state : int, default=0
        Seed of the folds and the default model.
    on_progress : callable or None, default=None
        Called with a short text before every step.

    Returns
    -------
    LabelErrors
        The expected number of wrong entries, ranked; ``ranked`` returns more or fewer.

    Raises
    ------
    ValueError
        If there is one class per row, rows or labels differ in number, scores are not finite, rates are
        invalid, or the structure has other labels.

    Examples
    --------
    >>> from labelweave import LowRankClassifier, datasets
    >>> from labelweave.noise import find_label_errors
    >>> data = datasets.make_text_like(300, 200, 8)
    >>> errors = find_label_errors(data.X, data.Y, scores=LowRankClassifier(rank=4))
    >>> len(errors.ranked(5))
    5
    """
    labels = _read_labels(y)
    if on_progress is not None and not callable(on_progress):
        raise ValueError(f"on_progress is {shown(on_progress)}; pass a function of one text, or None.")
    tell = (lambda words: None) if on_progress is None else on_progress
    if not 0 <= random_state < 2**32:
        raise ValueError(f"random_state is {random_state}; use a whole number from 0 to 2**32 - 1.")
    rates = read_flip_rates(flip_rates, labels.words)
    strengths = None if isinstance(related, bool | np.bool_) else label_strengths(related, labels)
    folds = folds_of(labels, min(_FOLDS, len(labels)), random_state)
    table = _scores(X, labels, scores, random_state, folds, tell)
    targets = labels.to_dense()
    tell("estimating flip rates")
    alone = fit_noisy_curves(targets, table, rates)
    found, relations = alone, None
    is_asked = strengths is not None or bool(related)
    if is_asked and 1 < labels.n_labels <= _MOST_LABELS and len(labels) >= _FEWEST_ROWS:
        tell("relating labels")
        known = [np.where(np.isnan(targets), alone.truth, targets), alone.posterior(targets)]
        residuals, least = targets - alone.expected(), np.inf
        for structure in (None,) if strengths is None else (None, strengths):
            asked = relate_labels(residuals, known, folds, structure)
            if asked is None:
                continue
            tell("estimating with related labels")
            curves = fit_noisy_curves(targets, table, rates, asked.evidence, alone)
            if (loss := curves.log_loss(targets)) < least:
                found, relations, least = curves, asked, loss
    return _Findings(labels, targets, alone, found, relations).ranked(None)


class _Findings(NamedTuple):
    """The data for all rankings of entries."""

    labels: LabelMatrix
    targets: RowsByLabels
    alone: NoisyCurves
    found: NoisyCurves
    related: RelatedLabels | None

    def ranked(self, top: int | None) -> LabelErrors:
        """Rank this many entries; None for the expected number of wrong ones."""
        targets, probabilities = self.targets, self.found.posterior(self.targets)
        wrong = np.where(np.isnan(targets), -1.0, np.abs(probabilities - targets)).ravel()
        expected, observed = float(wrong[wrong > 0].sum()), int(np.count_nonzero(wrong >= 0))
        count = min(observed, round(expected) if top is None else top)
        places = np.arange(len(wrong))
        if 0 < count < len(wrong):
            places = np.argpartition(-wrong, count - 1)[:count]
        order = places[np.lexsort((places, -wrong[places]))][:count]
        rows, columns = np.divmod(order, self.labels.n_labels)
        recorded = targets[rows, columns]
        alone = np.abs(self.alone.posterior(targets)[rows, columns] - recorded)
        return LabelErrors(
            rows, columns, recorded == 1, wrong[order], alone, expected, self.found.rates, probabilities,
            np.array(self.labels.words), self,
        )  # fmt: skip


def _read_labels(y: Any) -> LabelMatrix:
    if not has_many_labels(y):
        raise ValueError(
            "y has one class per row, but label errors need many labels; pass a table with one column of 0 "
            "and 1 per label."
        )
    labels = LabelMatrix.from_any(y).most_likely()
    if len(labels) < 2 or not labels.n_labels:
        raise ValueError(
            f"y has {len(labels)} row(s) and {labels.n_labels} label(s) (n_samples={len(labels)}); at least "
            "2 rows and a label are needed."
        )
    if len(labels) * labels.n_labels > LARGEST_TABLE:
        raise ValueError(
            f"{len(labels)} rows of {labels.n_labels} labels exceed {LARGEST_TABLE:.0e} entries; "
            "pass fewer rows or labels at a time."
        )
    if not labels.observed_counts().any():
        raise ValueError("y has no observed entry to check.")
    return labels


def _scores(
    X: Any, labels: LabelMatrix, scores: Any, random_state: int, folds: PerRow,
    tell: Callable[[str], object],
) -> RowsByLabels:  # fmt: skip
    if scores is None or hasattr(scores, "fit"):
        if X is None:
            raise ValueError(
                "X is None, but scores are not an array; pass rows, or out-of-fold scores of rows."
            )
        model = AutoLabelClassifier(random_state=random_state) if scores is None else scores
        found = out_of_fold_scores(model, X, labels, folds, tell)
    else:
        table = numbers_of(columns_by_name(scores, labels.words, "scores"), "scores").astype(np.float64)
        if table.shape != labels.shape:
            raise ValueError(
                f"scores has shape {table.shape} but y has shape {labels.shape}; they must agree."
            )
        found = as_log_odds(table)
    if not np.isfinite(found).all():
        row, label = np.argwhere(~np.isfinite(found))[0]
        raise ValueError(f"scores at row {row}, label {label} is {found[row, label]}; scores must be finite.")
    return found


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
