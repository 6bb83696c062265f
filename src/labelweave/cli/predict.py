"""``labelweave predict``: rows in, labels, classes or probabilities out, block by block."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TextIO

import click

from labelweave.cli.answers import AllProbabilities, Answers, CertifiedSets, LabelLists, OneClass
from labelweave.cli.data_options import Options, file_options
from labelweave.cli.graph_words import has_graph
from labelweave.cli.messages import flag_of, note
from labelweave.cli.model_outputs import has_one_class_a_row, has_probabilities
from labelweave.cli.model_rows import Model, RowBlock, classifier_of, open_model, row_blocks
from labelweave.datasets.data_file import replaced_file
from labelweave.decisions.layers import guarantee_words

__all__ = ["predict"]


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
def predict(model: str, data: str, output_format: str, out: str | None, **options: Any) -> None:  # fmt: skip
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
    blocks = row_blocks(loaded, data, options)
    _tell_guarantee(loaded, answers)
    with _destination(out) as stream:
        _WRITERS[output_format](stream, answers, blocks)
        stream.flush()


def _answers(model: Model, options: Options) -> Answers:
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


def _check_wishes(model: Model, options: Options) -> None:
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


def _check_certificates(model: Model, options: Options) -> None:
    """Refuse certificates of what is not inferred."""
    classifier = classifier_of(model)
    if not has_graph(classifier):
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
