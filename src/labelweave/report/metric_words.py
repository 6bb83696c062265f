"""The names of metrics, and which way is good."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["MetricLine", "metric_lines"]

_WORDS = {
    "accuracy": ("Accuracy", "share of rows whose class is right"),
    "mean_reciprocal_rank": ("Mean reciprocal rank", "1 where the right class comes first, 1/2 where second"),
    "log_loss": ("Log loss", "of the probabilities, in nats"),
    "taxonomic_loss": ("Taxonomic loss", "levels of the tree between the right class and the predicted one"),
    "parent_accuracy": (
        "Parent accuracy",
        "share of rows whose class is right or a sibling of the right one",
    ),
    "hamming_loss": ("Hamming loss", "share of the label table that is wrong"),
    "subset_accuracy": ("Subset accuracy", "share of rows whose labels are all right"),
    "micro_f1": ("Micro-F1", "of all labels together, so frequent ones count most"),
    "macro_f1": ("Macro-F1", "mean over labels, so rare ones count as much"),
    "example_f1": ("Example-F1", "mean over rows"),
    "auc_label": ("AUC of labels", "how well the scores of a label order the rows; 0.5 is chance"),
    "auc_example": ("AUC of rows", "how well the scores of a row order the labels"),
    "ranking_loss": ("Ranking loss", "share of pairs of a right and a wrong label in the wrong order"),
    "coverage_error": ("Coverage error", "how far down the ranking the last right label is"),
    "false_negatives": ("False negatives", "mean share of a row's right labels that are not predicted"),
    "false_discoveries": ("False discoveries", "mean share of a row's predicted labels that are wrong"),
    "label_ranking_average_precision": ("Ranking precision", "share of right labels above each right label"),
}
_LOW_IS_GOOD = {
    *("hamming_loss", "log_loss", "taxonomic_loss", "ranking_loss", "coverage_error"),
    *("false_negatives", "false_discoveries"),
}


class MetricLine(NamedTuple):
    """A metric.

    value: its value, NaN where undefined.
    meaning: what it is, in a few words.
    """

    name: str
    value: float
    low_is_good: bool
    meaning: str


def metric_lines(metrics: dict[str, float]) -> list[MetricLine]:
    """Name metrics."""
    return [MetricLine(*_named(key, value)) for key, value in metrics.items()]


def _named(key: str, value: float) -> tuple[str, float, bool, str]:
    kind, _, size = key.partition("@")
    if size and kind == "precision":
        best = "best label of a row" if size == "1" else f"{size} best labels of a row"
        return f"Precision at {size}", value, False, f"share of right ones among the {best}"
    if size:
        return f"nDCG at {size}", value, False, "like precision, but the first labels count more"
    name, meaning = _WORDS.get(key, (key, ""))
    return name, value, key in _LOW_IS_GOOD, meaning
