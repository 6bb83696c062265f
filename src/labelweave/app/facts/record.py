"""The record of facts about a model; its fields are called as in the JSON of ``labelweave inspect``."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

Plain = dict[str, Any]
_UNTOLD = ("changed", "steps", "thresholds")  # in JSON, which has all parameters
OF_SOME = ("factors", "graph", "choice", "taxonomy", "prior", "hyperparameters", "learning", "combination")


class Section(SimpleNamespace):
    """Facts about one side of a model: numbers, words, lists, and further sections."""


def plain(value: Any) -> Any:
    """Write sections as dictionaries."""
    if isinstance(value, Section):
        return {name: plain(part) for name, part in vars(value).items()}
    return [plain(part) for part in value] if isinstance(value, (list, tuple)) else value


class ModelFacts(Section):
    """What a fitted model is; what a family of models has no notion of is None.

    classifier: the class that scores.
    parameters: numbers and words as they are, anything larger by its type and size.
    changed: the names of those that are not as by default.
    fit: how it went; its gap is a share of the objective, NaN where there is no bound.
    steps: what the iterations of the fit are called.
    thresholds: from which scores or probabilities on labels are predicted, in words.
    decisions: what is around the classifier that scores, the outermost first.
    graph: the cliques of a graph of labels, from the strongest on, and the rounds in which it grew.
    choice: among ranks and regularizations, by cross-validation.
    learning: of hyper-parameters; its values are what they are now, in words.
    imputed: what stands for missing features, in words.
    unobserved: the labels that no training row told of.
    steps_before: the kinds of the steps of a pipeline that features go through first.
    combination: models that were combined; losses are squared errors of left-out probabilities as shares of
        the labels' variance, "uncoupled" before scores of other labels add to a label's, the value of the
        metric is that of left-out rows.
    pruning: weights that are kept sparse, and the relative gaps before and after the others were dropped.
    """

    @property
    def names(self) -> list[str]:
        """The classifiers that decide, from the outside, and the one that scores."""
        return [*(layer.classifier for layer in self.decisions), self.classifier]

    @property
    def threshold(self) -> str | None:
        """From where on labels are predicted, if something else than the usual was asked for."""
        is_said = self.thresholds is not None and self.thresholds.is_tuned and self.factors is None
        return str(self.thresholds.words) if is_said else None

    def to_json(self) -> Plain:
        found = {name: plain(value) for name, value in vars(self).items() if name not in _UNTOLD}
        for layer in found["decisions"]:
            del layer["changed"]
        found = {name: v for name, v in found.items() if name == "support_rows" or v not in (None, [])}
        found |= {} if self.threshold is None else {"threshold": self.threshold}
        prior: Plain = found.pop("prior", {})
        return found | prior
