"""The forms in which ``labelweave predict`` answers, each as JSON and as cells of a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Array
from labelweave.cli.model_outputs import (
    best_labelings,
    chosen_classes,
    probabilities_of,
    ranking_offsets,
    scores_of,
)
from labelweave.cli.model_rows import Model, RowBlock
from labelweave.inference import rejected

__all__ = ["AllProbabilities", "Answers", "CertifiedSets", "LabelLists", "OneClass"]

Record = dict[str, Any]


class Answers(Protocol):
    """A form of answers."""

    @property
    def header(self) -> list[str]:
        """The columns of the table."""

    def records(self, block: RowBlock) -> Iterator[Record]:
        """Answer for the rows of a block.

        Returns what is said of one row, its name under "id".
        """

    def lines(self, record: Record) -> list[list[Any]]:
        """Give the lines of the table for a record.

        Returns the cells of each line.
        """


def _short(value: Any) -> float:
    return float(f"{value:.6g}")


@dataclass(frozen=True)
class LabelLists:
    """The best labels of every row with their scores or probabilities.

    top: the most labels a row.
    threshold: what their numbers must exceed.
    """

    model: Model
    top: int | None
    threshold: float | None
    number: str

    @property
    def are_sets(self) -> bool:
        """Whether these are just the label sets that the model predicts."""
        return self.top is None and self.threshold == 0 and self.number == "score"

    @property
    def header(self) -> list[str]:
        """The columns of the table."""
        return ["id", "label", self.number]

    def records(self, block: RowBlock) -> Iterator[Record]:
        names = self.model.label_names_
        is_score = self.number == "score"
        numbers_of = scores_of if is_score else probabilities_of
        offsets = ranking_offsets(self.model) if is_score else np.zeros(1)
        for name, values in zip(block.ids, numbers_of(self.model, block.X), strict=True):
            chosen = self._chosen(values, values + offsets)
            labels = [{"label": str(names[k]), self.number: _short(values[k])} for k in chosen]
            yield {"id": name, "labels": labels}

    def _chosen(self, values: Array, ranks: Array) -> npt.NDArray[np.intp]:
        """Pick labels, best first; ties go to the lower number."""
        everything = self.threshold is None
        candidates = np.arange(len(values)) if everything else np.flatnonzero(values > self.threshold)
        return candidates[np.argsort(-ranks[candidates], kind="stable")][: self.top]

    def lines(self, record: Record) -> list[list[Any]]:
        found = [[record["id"], entry["label"], entry[self.number]] for entry in record["labels"]]
        return found or [[record["id"], "", ""]]


@dataclass(frozen=True)
class CertifiedSets:
    """The label set of every row, and whether it is proven to have the highest score.

    model: A model with a graph of labels.
    """

    model: Model

    @property
    def header(self) -> list[str]:
        """The columns of the table."""
        return ["id", "label", "score", "proven", "gap"]

    def records(self, block: RowBlock) -> Iterator[Record]:
        names, found = self.model.label_names_, best_labelings(self.model, block.X)
        scores = scores_of(self.model, block.X)
        rows = zip(block.ids, found.labels, scores, found.proven.tolist(), found.gaps, strict=True)
        for name, chosen, values, is_proven, gap in rows:
            order = np.flatnonzero(chosen)[np.argsort(-values[chosen > 0], kind="stable")]
            labels = [{"label": str(names[k]), "score": _short(values[k])} for k in order]
            yield {"id": name, "labels": labels, "proven": is_proven, "gap": _short(gap)}

    def lines(self, record: Record) -> list[list[Any]]:
        certificate = [str(record["proven"]).lower(), record["gap"]]
        found = [[record["id"], entry["label"], entry["score"], *certificate] for entry in record["labels"]]
        return found or [[record["id"], "", "", *certificate]]


@dataclass(frozen=True)
class OneClass:
    """The class of every row, none where the model is not sure enough.

    model: A model of one class a row.
    reject_below: the probability that the most probable class must reach.
    number: what is given of the chosen class.
    """

    model: Model
    reject_below: float | None
    number: str

    @property
    def header(self) -> list[str]:
        """The columns of the table."""
        return ["id", "class", self.number]

    def records(self, block: RowBlock) -> Iterator[Record]:
        values = (scores_of if self.number == "score" else probabilities_of)(self.model, block.X)
        for name, chosen, word, row in _decisions(self.model, block, values, self.reject_below):
            yield {"id": name, "class": word, self.number: _short(row[chosen])}

    def lines(self, record: Record) -> list[list[Any]]:
        return [[record["id"], "" if record["class"] is None else record["class"], record[self.number]]]


@dataclass(frozen=True)
class AllProbabilities:
    """The probabilities of all classes or labels, a column each.

    reject_below: the probability that the most probable class must reach.
    one_class: whether the model has one class a row, which is given too.
    """

    model: Model
    reject_below: float | None
    one_class: bool

    @property
    def header(self) -> list[str]:
        """The columns of the table."""
        return ["id", *(["class"] if self.one_class else []), *map(str, self.model.label_names_)]

    def records(self, block: RowBlock) -> Iterator[Record]:
        names = [str(name) for name in self.model.label_names_]
        values = probabilities_of(self.model, block.X)
        words: list[Record] = [{} for _ in block.ids]
        if self.one_class:
            decided = _decisions(self.model, block, values, self.reject_below)
            words = [{"class": word} for _, _, word, _ in decided]
        for name, word, row in zip(block.ids, words, values, strict=True):
            yield {"id": name} | word | {"probabilities": dict(zip(names, map(_short, row), strict=True))}

    def lines(self, record: Record) -> list[list[Any]]:
        word = [record["class"] or ""] if self.one_class else []
        return [[record["id"], *word, *record["probabilities"].values()]]


def _decisions(
    model: Model, block: RowBlock, values: Array, reject_below: float | None
) -> Iterator[tuple[Any, int, str | None, Array]]:
    """Give every row's name, class number, class or None where rejected, and values."""
    names = model.label_names_
    chosen = chosen_classes(model, block.X, values)
    unsure = (
        np.zeros(len(chosen), bool) if reject_below is None else rejected(values, confidence=reject_below)
    )
    for name, number, is_unsure, row in zip(block.ids, chosen.tolist(), unsure.tolist(), values, strict=True):
        yield name, number, None if is_unsure else str(names[number]), row
