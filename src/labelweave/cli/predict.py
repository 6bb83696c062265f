"""``labelweave predict``: rows in, labels, classes or probabilities out, block by block."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, TextIO

import click
import numpy as np

from labelweave.array_types import Array
from labelweave.cli.flags import DataFlags, file_options
from labelweave.cli.messages import flag_of, note
from labelweave.cli.model_rows import (
    Model,
    RowBlock,
    chosen_classes,
    classifier_of,
    features_of,
    has_one_class_a_row,
    has_probabilities,
    open_model,
    probabilities_of,
    ranking_offsets,
    row_blocks,
    scores_of,
)
from labelweave.datasets.data_file import replaced_file
from labelweave.decisions.layers import guarantee_words
from labelweave.estimators import LabelGraphClassifier
from labelweave.inference import rejected

__all__ = ["predict"]

Record = dict[str, Any]


@click.command()
@click.argument("model")
@click.argument("data")
@click.option("--top", type=click.IntRange(1), help="Print so many labels a row, the best first.")
@click.option("--threshold", type=float, help="Print labels with scores above this [0, without --top].")
@click.option(
    "--probabilities",
    is_flag=True,
    help="Print probabilities: of everything, or with --top or --threshold in place of scores.",
)
@click.option(
    "--reject-below",
    metavar="P",
    type=click.FloatRange(0, 1),
    help="One class a row: print none where the most probable one is less probable.",
)
@click.option(
    "--certificates",
    is_flag=True,
    help="label-graph: print of each row whether its labels are proven best, and by how much others could "
    "score more.",
)
@click.option(
    "--output-format",
    type=click.Choice(["jsonl", "tsv"]),
    default="jsonl",
    show_default=True,
    help="JSON lines, or a table with tabs.",
)
@click.option("--out", "-o", metavar="FILE", help="Write to a file in place of stdout.")
@click.option("--id", metavar="COLUMN", help="Table: the column that names the rows.")
@file_options
def predict(model: str, data: str, output_format: str, out: str | None, **options: Any) -> None:
    """Predict the labels of the rows of a data file.

    Prints the labels with positive scores, the best first, or the class of each
    row if the model has one class a row; rows without a name are numbered from
    zero.  Scores are those above the model's thresholds, where it has any; what
    label sets of a model fitted with --conformal guarantee is told on stderr.  A
    table needs the feature columns that the model was fitted to, and no labels.

    \b
    Examples:
      labelweave predict tags.lw new.jsonl --top 5
      labelweave predict tags.lw new.csv --threshold -0.5 --output-format tsv
      labelweave predict bibtex.lw bibtex-test.arff --out labels.jsonl
      labelweave predict scene.lw new.arff --certificates
      labelweave predict animals.lw new.csv --reject-below 0.8
      labelweave predict animals.lw new.csv --probabilities --output-format tsv
    """
    loaded = open_model(model)
    answers = _answers(loaded, options)
    blocks = row_blocks(loaded, data, DataFlags.of(options))
    _tell_guarantee(loaded, answers)
    with _destination(out) as stream:
        _WRITERS[output_format](stream, answers, blocks)
        stream.flush()


def _answers(model: Model, options: dict[str, Any]) -> Answers:
    """Choose the form of the answers."""
    top, threshold, reject_below = options["top"], options["threshold"], options["reject_below"]
    one_class, is_list = has_one_class_a_row(model), top is not None or threshold is not None
    _check_wishes(model, options)
    if options["certificates"]:
        _check_certificates(model, options)
        return CertifiedSets(model)
    wants = options["probabilities"]
    if is_list:
        return LabelLists(model, top, threshold, "probability" if wants else "score")
    if wants:
        return AllProbabilities(model, reject_below, one_class)
    if one_class:
        return OneClass(model, reject_below, "probability" if has_probabilities(model) else "score")
    return LabelLists(model, None, 0.0, "score")


def _tell_guarantee(model: Model, answers: Answers) -> None:
    """State what is guaranteed of label sets, if these are what is printed."""
    promise = guarantee_words(classifier_of(model))
    if promise is not None and isinstance(answers, LabelLists) and answers.are_sets:
        note(f"guaranteed of these label sets: {promise}.")


def _check_wishes(model: Model, options: dict[str, Any]) -> None:
    """Refuse what the model cannot give."""
    wish = next(
        (flag for flag in ("reject_below", "probabilities") if options[flag] not in (None, False)), None
    )
    if wish is None:
        return
    flag = flag_of(wish)
    if not has_probabilities(model):
        kind = type(classifier_of(model)).__name__
        raise click.UsageError(
            f"{flag} needs probabilities, which a {kind} does not give; fit one with --model "
            "kernel-logistic, or with --calibrate."
        )
    if options["reject_below"] is None:
        return
    if math.isnan(options["reject_below"]):
        raise click.UsageError("--reject-below is nan; give a number from 0 to 1.")
    if not has_one_class_a_row(model):
        raise click.UsageError(
            "--reject-below is for one class a row, but this model predicts many labels a row."
        )
    listing = next((name for name in ("top", "threshold") if options[name] is not None), None)
    if listing is not None:
        raise click.UsageError(
            f"--reject-below leaves one class a row or none, but --{listing} lists several."
        )


def _check_certificates(model: Model, options: dict[str, Any]) -> None:
    """Refuse certificates of what is not inferred."""
    classifier = classifier_of(model)
    if not isinstance(classifier, LabelGraphClassifier):
        raise click.UsageError(
            f"--certificates are of label-graph models, and this is a {type(classifier).__name__}."
        )
    if has_one_class_a_row(model):
        raise click.UsageError("--certificates are of label sets, and this model predicts one class a row.")
    wishes = ("top", "threshold", "probabilities")
    other = next((name for name in wishes if options[name] is not None and options[name] is not False), None)
    if other is not None:
        raise click.UsageError(f"--certificates are of whole label sets, and --{other} prints others.")


def _destination(out: str | None) -> AbstractContextManager[TextIO]:
    if out is None:
        return nullcontext(sys.stdout)
    return replaced_file(out)


def _write_json_lines(stream: TextIO, answers: Answers, blocks: Iterable[RowBlock]) -> None:
    for block in blocks:
        for record in answers.records(block):
            stream.write(json.dumps(record, ensure_ascii=False) + "\n")


def _write_tab_separated(stream: TextIO, answers: Answers, blocks: Iterable[RowBlock]) -> None:
    writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
    writer.writerow(answers.header)
    for block in blocks:
        for record in answers.records(block):
            writer.writerows(answers.lines(record))


_WRITERS = {"jsonl": _write_json_lines, "tsv": _write_tab_separated}


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

    def _chosen(self, values: Array, ranks: Array) -> Array:
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
        names, found = (
            self.model.label_names_,
            classifier_of(self.model).predict_map(features_of(self.model, block.X)),
        )
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
