"""``labelweave decide``: put a fitted model into classifiers that decide on its scores."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from labelweave.cli.decision_flags import DECISIONS, check_decision_flags, decision_class, decision_options
from labelweave.cli.flags import DataFlags, file_options, label_column_options, unknown_label_option
from labelweave.cli.messages import print_lines, require_writable, size_of, with_flags
from labelweave.cli.model_rows import (
    Model,
    classifier_of,
    features_of,
    has_one_class_a_row,
    open_model,
    read_labeled_rows,
    unknown_labels,
)
from labelweave.datasets import LabeledData
from labelweave.decisions.layers import guarantee_words
from labelweave.estimators import TableModel
from labelweave.facts import decision_lines, model_facts
from labelweave.labels import LabelMatrix
from labelweave.metrics.known_labels import known_labels

__all__ = ["decide"]


@click.command()
@click.argument("model")
@click.argument("data")
@click.option("--out", "-o", metavar="FILE", required=True, help="Where the model goes.")
@decision_options
@unknown_label_option
@click.option("--quiet", "-q", is_flag=True, help="Write nothing but warnings and errors.")
@label_column_options
@file_options
def decide(model: str, data: str, out: str, quiet: bool, **options: Any) -> None:
    """Tune or calibrate a fitted model on held-out rows.

    Its decisions are made best for a measure, or bounded, or turned to probabilities.
    DATA are labelled rows that the model was not fitted to, all of which are used;
    the model stays as it is.  To hold rows out of the training data, give the same
    flags to fit.

    \b
    Examples:
      labelweave decide tags.lw held-out.csv --tune-threshold macro_f1 --out tuned.lw
      labelweave decide bibtex.lw held-out.arff --calibrate isotonic --out odds.lw
      labelweave decide odds.lw other.arff --conformal false_discoveries,level=0.2 \\
          --out sets.lw
    """
    require_writable(out)
    given = {name: options[name] for name in DECISIONS if options[name] is not None}
    if not given:
        raise click.UsageError("Give --tune-threshold, --calibrate or --conformal.")
    check_decision_flags(given, prefit=True)
    loaded, source = open_model(model), DataFlags.of(options)
    _refuse_model(loaded, model)
    rows = read_labeled_rows(loaded, data, source)
    found, X, truth = classifier_of(loaded), features_of(loaded, rows.X), _truth(loaded, rows, source)
    for name, settings in given.items():
        found = decision_class(name)(found, **settings, cv="prefit").fit(X, truth)
    whole = TableModel(loaded.vectorizer, found, loaded.columns) if isinstance(loaded, TableModel) else found
    whole.save(out)
    if not quiet:
        lines = {"rows": str(len(rows)), **decision_lines(model_facts(found))}
        print_lines(lines | {"model": f"{out} ({size_of(out)})"}, 10, err=True)


def _refuse_model(model: Model, path: str) -> None:
    if has_one_class_a_row(model):
        raise ValueError(f"{path} has one class a row; decide takes models of many labels a row.")
    if guarantee_words(classifier_of(model)) is not None:
        raise ValueError(
            f"{path} holds label sets with a guarantee, which another decision would undo; give the file of "
            "the model without --conformal."
        )


def _truth(model: Model, rows: LabeledData, source: DataFlags) -> LabelMatrix:
    """Give the labels of the data in the order of the model, which must all be there."""
    names = [str(name) for name in model.label_names_]
    try:
        truth, columns = known_labels(rows.Y, names, unknown_labels(source))
    except ValueError as error:
        raise ValueError(with_flags(error)) from None
    absent = sorted(set(range(len(names))) - set(columns.tolist()))
    if absent:
        raise ValueError(
            f"{len(absent)} of the model's {len(names)} labels are not in the data, such as "
            f"{names[absent[0]]!r}; give data with all of them."
        )
    return truth.select_labels(np.argsort(columns))
