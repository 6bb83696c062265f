"""Metrics of a model on rows, their names, and the predictions that explain them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.app.report import reported_rows
from labelweave.app.report.reported_rows import OnProgress, Outcomes, ReportedRows
from labelweave.decisions import ConformalLabelClassifier
from labelweave.decisions.layers import chosen_classes, shown_thresholds, taxonomy_of, with_probabilities
from labelweave.foundation.array_types import Array, RowsByLabels
from labelweave.labels import LabelMatrix, Taxonomy
from labelweave.labels.class_columns import ClassColumns
from labelweave.metrics import class_summary, expected_calibration_error, log_loss, score_table
from labelweave.metrics._classes import class_codes
from labelweave.metrics._inputs import row_observed_counts
from labelweave.metrics.class_metrics import column_accuracies
from labelweave.metrics.hierarchies import fmax_score, hierarchical_f1_score
from labelweave.metrics.known_labels import (
    Unknown,
    known_classes,
    known_labels,
    label_probabilities,
    tags_of_model,
    widened,
)
from labelweave.metrics.probabilities import CALIBRATION_FROM
from labelweave.metrics.rankings import average_precision_score
from labelweave.splits.splitters import take_rows

_WORDS = {
    "accuracy": ("Accuracy", "share of rows with the right class"),
    "mean_reciprocal_rank": ("Mean reciprocal rank", "2 where second/2 where second"),
    "log_loss": ("Log loss", "of the probabilities, in nats"),
    "calibration_error": (
        "Calibration error",
        f"mean distance of probabilities above {CALIBRATION_FROM:g} from the observed share",
    ),
    "column_accuracy": ("Accuracy of columns", "share of rows with the right class, mean over columns"),
    "taxonomic_loss": ("Taxonomic loss", "levels of the tree between the right class and the predicted one"),
    "parent_accuracy": (
        "Parent accuracy",
        "share of rows whose class is right or a sibling of the right one",
    ),
    "hamming_loss": ("Hamming loss", "share of wrong entries in the label table"),
    "subset_accuracy": ("Subset accuracy", "share of rows with all labels right"),
    "micro_f1": ("Micro-F1", "over all labels together, so frequent ones count most"),
    "macro_f1": ("Macro-F1", "mean over labels, so rare ones count as much"),
    "example_f1": ("Example-F1", "mean over rows"),
    "au_prc": ("AU(PRC)", "area under the curve of precision and recall of all labels together"),
    "fmax": ("Fmax", "best F1 of mean precision and recall of rows over thresholds"),
    "hierarchical_f1": ("Hierarchical F1", "of label sets with their ancestors"),
    "auc_label": ("AUC of labels", "how well the scores of a label order the rows; 0.5 is chance"),
    "auc_example": ("AUC of rows", "how well the scores of a row order the labels"),
    "ranking_loss": ("Ranking loss", "share of pairs of a right and a wrong label in the wrong order"),
    "coverage_error": ("Coverage error", "rank of the last right label"),
    "false_negatives": ("False negatives", "mean share of a row's right labels that are not predicted"),
    "false_discoveries": ("False discoveries", "mean share of a row's predicted labels that are wrong"),
    "label_ranking_average_precision": ("Ranking precision", "share of right labels above each right label"),
}
OF_WHOLE_RANKINGS = {
    "auc_label", "auc_example", "ranking_loss", "coverage_error", "label_ranking_average_precision",
}  # fmt: skip
_LOW_IS_GOOD = {
    "hamming_loss", "log_loss", "calibration_error", "taxonomic_loss", "ranking_loss", "coverage_error",
    "false_negatives", "false_discoveries",
}  # fmt: skip


def metric_line(key: str, value: float) -> SimpleNamespace:
    kind, _, size = key.partition("@")
    name, meaning = _WORDS.get(key, (key, ""))
    if size and kind == "precision":
        best = "best label of a row" if size == "1" else f"{size} best labels of a row"
        name, meaning = f"Precision at {size}", f"share of right ones among the {best}"
    elif size:
        name, meaning = f"nDCG at {size}", "like precision, but the first labels count more"
    return SimpleNamespace(name=name, value=value, low_is_good=key in _LOW_IS_GOOD, meaning=meaning)


@dataclass(frozen=True)
class Measured:
    """The quality of a model.

    metrics: as printed by the command ``evaluate``.
    notes: sentences about what is not counted.
    n_counted: number of evaluated rows, those with observed values.
    metrics_of: a function from positions of these rows to the metrics of these alone.
    probabilities: those of the outcomes' rows and labels, if the model has them.
    table: labels, scores and predicted sets of the counted rows, with labels unknown to the model
        last; not with one class per row.
    true_nodes, predicted_nodes (m,): with one class per row, the classes of all rows with a known class or
        inner node of the taxonomy.
    """

    outcomes: Outcomes
    metrics: dict[str, float]
    notes: list[str]
    n_counted: int
    metrics_of: Callable[[Array], dict[str, float]]
    true_nodes: Array | None = None
    predicted_nodes: Array | None = None
    probabilities: RowsByLabels | None = None
    table: tuple[LabelMatrix, Any, Any] | None = None


def measure(rows: ReportedRows, y: Any, unknown: Unknown, on_progress: OnProgress) -> Measured:
    found = (measure_classes if rows.has_classes else _measure_labels)(rows, y, unknown, on_progress)
    if rows.weights is not None:
        found.notes.append("Rows count by their weights in all metrics but those of single labels.")
    return found


def _of_rows(weights: Array | None, part: Any) -> Array | None:
    return None if weights is None else weights[part]


def _measure_labels(rows: ReportedRows, y: Any, unknown: Unknown, on_progress: OnProgress) -> Measured:
    columns_of_classes = rows.classifier._form.columns
    if columns_of_classes is not None:
        y = tags_of_model(y, rows.classifier, others="add")
    tree, hierarchy = taxonomy_of(rows.classifier), getattr(rows.classifier, "_hierarchy", None)
    whole, columns = known_labels(y, rows.label_names, unknown, hierarchy)
    truth = whole.select_labels(np.arange(len(columns)))
    nodes = [] if tree is None else [k for k, name in enumerate(whole.words) if name in tree]
    _check_length(rows, len(truth))
    number, scores, predicted = reported_rows.all_labels(rows, columns, on_progress)
    on_progress("measuring")
    source, probabilities = with_probabilities(rows.classifier), None
    if source is rows.classifier:
        probabilities = scores
    elif source is not None:
        probabilities = label_probabilities(source, rows.X, len(rows.label_names))[:, columns]

    own, sets = widened(scores, whole, False), widened(predicted, whole)
    shares = None if probabilities is None else widened(probabilities, whole, False)

    def metrics_of(part: Any) -> dict[str, float]:
        weights = _of_rows(rows.weights, part)
        found = score_table(whole[part], own[part], sets[part], sample_weight=weights)
        if columns_of_classes is not None:
            found |= _of_columns(whole[part], sets[part], columns_of_classes, weights)
        if sp.issparse(scores):
            return {name: value for name, value in found.items() if name not in OF_WHOLE_RANKINGS}
        if shares is None or probabilities is None:
            return found
        found["log_loss"] = log_loss(whole[part], shares[part], sample_weight=weights)
        return found | _calibration(truth[part], probabilities[part], weights)

    metrics, limits = metrics_of(slice(None)), shown_thresholds(rows.classifier)
    if tree is not None and nodes and not sp.issparse(scores):
        at_nodes = whole.select_labels(nodes), own[:, nodes], sets[:, nodes]
        metrics |= _of_hierarchy(*at_nodes, tree, sample_weight=rows.weights)
    limits = None if limits is None else limits[columns]
    outcomes = Outcomes(truth, predicted, scores, np.arange(len(rows)), columns, number, limits)
    notes = _label_notes(truth, len(rows.label_names))
    if outcomes.is_searched:
        notes.append(_search_note(outcomes, len(rows.label_names)))
    metrics |= _controlled_share(rows.classifier, outcomes, rows.weights)
    seen = np.flatnonzero(row_observed_counts(truth))
    found = Measured(outcomes, metrics, notes, len(seen), lambda part: metrics_of(seen[part]))
    return replace(found, probabilities=probabilities)


def _of_columns(truth: LabelMatrix, sets: Any, columns: ClassColumns, weights: Any) -> dict[str, float]:
    """Return the accuracy of every column of classes, and their mean."""
    found = column_accuracies(truth, sets, columns, np.ones(len(truth)) if weights is None else weights)
    mean = {"column_accuracy": float(np.nanmean([*found.values()]))}
    return mean | {f"accuracy of {name}": value for name, value in found.items()}


def _of_hierarchy(truth: LabelMatrix, scores: Any, sets: Any, tree: Taxonomy, **how: Any) -> dict[str, float]:
    """Return the standard metrics of hierarchies; scores that are not shares have other thresholds."""
    is_share = scores.min(initial=0.0) >= 0 and scores.max(initial=0.0) <= 1
    levels = None if is_share else np.unique(np.quantile(scores, np.linspace(0, 1, 101)))
    return {
        "au_prc": float(average_precision_score(truth, scores, average="micro", **how)),
        "fmax": float(fmax_score(truth, scores, tree, thresholds=levels, **how)),
        "hierarchical_f1": float(hierarchical_f1_score(truth, sets, tree, **how)),
    }


def _search_note(outcomes: Outcomes, n_labels: int) -> str:
    """Describe a search for the best labels, its recall, and the metrics that it excludes."""
    is_found = sp.csr_array(outcomes.scores, copy=True)
    is_found.data[:] = 1
    share = outcomes.truth.positives.multiply(is_found).sum() / max(1, outcomes.truth.positives.nnz)
    return (
        f"Only the {reported_rows.SEARCHED} best labels of each row were scored; they contain {share:.1%} "
        "of true labels. Metrics over the ranks of all labels are omitted: AUC, ranking loss, coverage error "
        f"and ranking precision; up to {reported_rows.MOST_SCORES // n_labels:,} rows have these."
    )


def _calibration(truth: LabelMatrix, probabilities: Any, weights: Array | None) -> dict[str, float]:
    """Return the calibration error; nothing without observed entries of probabilities above the level."""
    if not truth.observed_counts().any():
        return {}
    how: Any = {"least": CALIBRATION_FROM, "sample_weight": weights}
    error = float(expected_calibration_error(truth, probabilities, **how))
    return {} if np.isnan(error) else {"calibration_error": error}


def _controlled_share(classifier: Any, outcomes: Outcomes, weights: Array | None) -> dict[str, float]:
    """Return the controlled error of conformal label sets: the mean share over rows, 0 for empty sets."""
    if not isinstance(classifier, ConformalLabelClassifier):
        return {}
    mistakes, of = outcomes.missed, outcomes.truth.positives
    if classifier.control == "false_discoveries":
        mistakes, of = outcomes.wrong, outcomes.counted
    shares = mistakes.sum(axis=1) / np.maximum(1, of.sum(axis=1))
    observed = outcomes.truth.observed
    seen = slice(None) if observed is None else np.diff(observed.indptr) > 0
    mean = np.average(shares[seen], weights=_of_rows(weights, seen))
    return {classifier.control: float(mean)}


def _check_length(rows: ReportedRows, n_targets: int) -> None:
    if n_targets != len(rows):
        raise ValueError(f"X has {len(rows)} rows but y has {n_targets}; pass one row of y per row of X.")


def _label_notes(truth: LabelMatrix, n_labels: int) -> list[str]:
    notes, empty = list[str](), int((truth.positive_counts() == 0).sum())
    if truth.has_missing:
        share = 1 - truth.observed_counts().sum() / (len(truth) * truth.n_labels)
        notes.append(f"{share:.1%} of the entries of the label table are missing and are not counted.")
    if truth.flip_probabilities is not None:
        share = truth.flip_probabilities.nnz / (len(truth) * truth.n_labels)
        notes.append(
            f"{share:.1%} of the entries of the label table are probabilities: label sets are counted by "
            "them, rankings use the more likely labels."
        )
    if truth.n_labels < n_labels:
        notes.append(f"{n_labels - truth.n_labels} of the model's {n_labels} labels are not in the data.")
    if empty:
        notes.append(
            f"No row of the data has {empty} of the {truth.n_labels} labels; their recall is unknown."
        )
    return notes


def measure_classes(
    rows: ReportedRows, y: Any, unknown: Unknown, on_progress: OnProgress, missed: Iterable[str] = ()
) -> Measured:
    """Evaluate rows with one class each; missed: classes of other rows that the model lacks."""
    names, taxonomy = rows.label_names, taxonomy_of(rows.classifier)
    classes = known_classes(y, names, taxonomy, unknown)
    _check_length(rows, len(classes))
    known = np.flatnonzero(classes != None)  # noqa: E711
    X, nameless, weights = take_rows(rows.X, known), [""] * len(known), _of_rows(rows.weights, known)
    kept = ReportedRows(rows.classifier, X, nameless, None, weights=weights)
    has_probabilities = hasattr(rows.classifier, "predict_proba")
    scores = reported_rows.all_scores(kept, "predict_proba" if has_probabilities else "auto", on_progress)
    on_progress("measuring")
    chosen = chosen_classes(kept.classifier, scores, lambda: kept.classifier.predict(kept.X))
    true = classes[known]
    exact = np.flatnonzero(np.isin(true, names))
    above = [] if taxonomy is None else [name for name in taxonomy.nodes if taxonomy.under([name], names).nnz]
    every = [*names, *sorted({*true.tolist(), *missed} - {*names, *above})]  # and the missed classes
    taxonomy = None if taxonomy is None else taxonomy._with_roots(every)
    own, counted = widened(scores, _as_labels(true, every), False), np.flatnonzero(np.isin(true, every))
    if not len(exact):
        raise ValueError(
            "No row of the data has a class of the model, only nodes above them, so there is nothing to "
            "compare."
        )
    truth, predicted_names = _as_labels(true[exact], names), np.array(names, object)[chosen]
    sets = _as_labels(predicted_names[counted], every).positives
    table = _as_labels(true[counted], every), own[counted], sets
    number = "probability" if has_probabilities else "score"
    predicted = _as_labels(predicted_names[exact], names).positives
    limits = shown_thresholds(rows.classifier) if rows.classifier._form.is_pair else None
    if limits is not None:  # thresholds of the second class; the first has the complement
        limits = np.array([float(has_probabilities) - limits[-1], limits[-1]])
    outcomes = Outcomes(truth, predicted, scores[exact], known[exact], np.arange(len(names)), number, limits)

    def metrics_of(part: Any) -> dict[str, float]:
        if has_probabilities:
            how: Any = {"y_pred": predicted_names[part], "sample_weight": _of_rows(weights, part)}
            found = class_summary(true[part], own[part], every, taxonomy=taxonomy, **how)
            return found | _calibration(_as_labels(true[part], names), scores[part], how["sample_weight"])
        some = counted[part]
        counts, (labels, shares, sets) = _of_rows(weights, some), (one[part] for one in table)
        accuracy = float(np.average(true[some] == predicted_names[some], weights=counts))
        return {"accuracy": accuracy} | score_table(labels, shares, sets, sample_weight=counts)

    metrics, n_counted = metrics_of(slice(None)), len(true) if has_probabilities else len(counted)
    notes = class_notes(len(classes), len(known), len(counted))
    nodes = (true.astype(str), predicted_names.astype(str))
    probabilities = outcomes.scores if has_probabilities else None
    return Measured(outcomes, metrics, notes, n_counted, metrics_of, *nodes, probabilities, table)


def _as_labels(classes: Array, names: list[str]) -> LabelMatrix:
    """Convert classes to labels; rows with an inner node are unobserved."""
    known = np.isin(classes, names)
    places = (np.flatnonzero(known), class_codes(classes[known], names))
    positives = sp.csr_array((np.ones(len(places[0]), np.int8), places), shape=(len(classes), len(names)))
    seen = np.repeat(known[:, None], len(names), axis=1).astype(np.int8)
    return LabelMatrix(positives, None if known.all() else sp.csr_array(seen), names)


def class_notes(n_rows: int, n_known: int, n_exact: int) -> list[str]:
    """Describe how many rows have no known class, or only a known inner node."""
    notes = []
    if n_known < n_rows:
        notes.append(f"{n_rows - n_known} of {n_rows} rows have no known class and are not counted.")
    if n_exact < n_known:
        notes.append(
            f"{n_known - n_exact} of {n_rows} rows have only a known group of classes; they count in the "
            "tree, the log loss and the taxonomic loss, not for single classes."
        )
    return notes
