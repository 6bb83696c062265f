"""``labelweave evaluate``, ``report`` and ``decide``: commands for a model and labeled rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from sklearn.pipeline import Pipeline

import labelweave
from labelweave.app.cli import messages, model_rows
from labelweave.app.cli.answer_files import Evaluation, label_rows, write_csv
from labelweave.app.cli.decision_flags import DECISIONS, refused_decisions, with_decisions
from labelweave.app.cli.flags import DataFlags
from labelweave.app.cli.messages import Waiting
from labelweave.app.cli.model_rows import Model
from labelweave.app.cli.pipeline_rows import as_taken
from labelweave.app.facts import decision_lines, model_facts
from labelweave.app.report import ReportOptions, write_report
from labelweave.app.report.label_numbers import label_numbers
from labelweave.app.report.measured import measure
from labelweave.app.report.reported_rows import SEARCHED, read_rows
from labelweave.datasets import LabeledData
from labelweave.decisions.layers import guarantee_words, taxonomy_of
from labelweave.estimators import LabelGraphClassifier, TableModel
from labelweave.foundation.array_types import Array
from labelweave.labels import LabelMatrix
from labelweave.metrics.known_labels import known_classes, known_labels
from labelweave.model_files import read_model_file


def run(flags: DataFlags) -> None:
    if flags.as_json and flags.as_csv:
        raise click.UsageError("--json and --csv are two formats; use one of them.")
    loaded = model_rows.open_model(flags.model, flags.key)
    if flags.dask is None:
        found = _evaluation(loaded, flags.data, flags)
    else:
        from labelweave.app.cli.cluster import measured_on_cluster

        found = measured_on_cluster(loaded, flags.data, flags, flags.dask)
    for words in found.notes:
        messages.note(words)
    if flags.as_json:
        messages.print_json(found.counts | found.metrics | {"per_label": found.of_labels()})
        return
    if flags.as_csv:
        write_csv(found.of_labels())
        return
    messages.console().print(
        ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in found.counts.items())
    )
    messages.console().print(messages.metric_table({"value": found.metrics}))
    promise = guarantee_words(model_rows.classifier_of(loaded)) if flags.dask is None else None
    if promise is not None:
        messages.say(click.wrap_text(f"Guaranteed: {promise}.", 79))


def _evaluation(model: Model, data: str, source: DataFlags) -> Evaluation:
    data_rows = model_rows.read_labeled_rows(model, data, source)
    rows = replace(read_rows(model, as_taken(model, data_rows.X), None), weights=data_rows.weights)
    measured = measure(rows, model_rows.truth_of(model, data_rows), source.unknown_labels, lambda words: None)
    outcomes, metrics = measured.outcomes, measured.metrics
    counts = {"rows": len(rows), "labels": outcomes.truth.n_labels}
    if measured.true_nodes is not None:
        counts = {"rows": len(measured.true_nodes), "classes": len(rows.label_names)}
    if outcomes.is_searched:
        counts |= {"searched_labels": SEARCHED}
    if isinstance(rows.classifier, LabelGraphClassifier):
        metrics |= {"proven_optimal": float(rows.classifier.predict_map(rows.X).proven.mean())}

    def of_labels() -> list[dict[str, Any]]:
        numbers = label_numbers(outcomes, measured.probabilities)
        calibration = {} if numbers.calibration is None else {"calibration_error": numbers.calibration}
        return label_rows(outcomes.names, numbers.observed, numbers, {"auc": numbers.auc} | calibration)

    return Evaluation(measured.notes, counts, metrics, of_labels)


def report(flags: DataFlags) -> None:
    model, data, out = flags.model, flags.data, flags.out
    messages.require_writable(out, model, data, flags.xml, *(flags.vectors or ()))
    loaded = model_rows.open_model(model, flags.key)
    rows = model_rows.read_labeled_rows(loaded, data, flags)
    versions = read_model_file(model, verify=False, key=flags.key).versions
    settings = ReportOptions(
        title=flags.title or f"{Path(model).name} on {Path(data).name}",
        facts={
            "Model file": f"{Path(model).name}, {messages.size_of(model)}",
            "Saved by": ", ".join(f"{name} {version}" for name, version in versions.items()),
            "Data": f"{Path(data).name}, {len(rows)} rows",
        },
        weakest=flags.weakest,
        examples=flags.examples,
        unknown_labels=flags.unknown_labels,
        sample_weight=rows.weights,
    )
    how: Any = {"row_names": rows.row_ids, "options": settings, "on_progress": Waiting()}
    write_report(loaded, as_taken(loaded, rows.X), model_rows.truth_of(loaded, rows), out, **how)
    messages.hint(f"the report is in {out}, {messages.size_of(out)}.")


def decide(flags: DataFlags) -> None:
    model, data, out = flags.model, flags.data, flags.out
    # the output may replace the model, which is inside it
    messages.require_writable(out, data, flags.xml, *(flags.vectors or ()))
    given = {name: vars(flags)[name] for name in DECISIONS if vars(flags)[name] is not None}
    if not given:
        raise click.UsageError("Use --enforce, --tune-threshold, --calibrate or --conformal.")
    messages.refuse(refused_decisions(given, prefit=True))
    loaded = model_rows.open_model(model, flags.key)
    has_classes = model_rows.has_one_class_a_row(loaded)
    if has_classes and "tune_threshold" in given:
        raise ValueError(f"{model} has one class per row, but --tune-threshold is for many labels per row.")
    if guarantee_words(model_rows.classifier_of(loaded)) is not None:
        raise ValueError(
            f"{model} holds label sets with a guarantee, which another decision would break; use the file of "
            "the model without --conformal."
        )
    rows = model_rows.read_labeled_rows(loaded, data, flags)
    found: Any = model_rows.classifier_of(loaded)
    X = model_rows.features_of(loaded, rows.X)
    truth = (_classes if has_classes else _truth)(loaded, rows, flags)
    for name, settings in given.items():
        found = with_decisions(found, {name: settings}, rows.taxonomy, cv="prefit").fit(X, truth)
    whole = found
    if isinstance(loaded, TableModel):
        whole = TableModel.of_fitted(loaded.vectorizer_, found, loaded.columns_)
    elif isinstance(loaded, Pipeline):
        whole = Pipeline([*loaded.steps[:-1], (loaded.steps[-1][0], found)])
    labelweave.save(whole, out, key=flags.key)
    if not flags.quiet:
        lines = {"rows": str(len(rows)), **decision_lines(model_facts(found))}
        messages.print_lines(lines | {"model": f"{out} ({messages.size_of(out)})"}, 10, err=True)


def _classes(model: Model, rows: LabeledData, source: DataFlags) -> Array:
    """Return the class of every row as the model names it; None where unknown."""
    classifier = model_rows.classifier_of(model)
    names, truth = [str(name) for name in classifier.classes_], model_rows.truth_of(model, rows)
    found = known_classes(truth, names, taxonomy_of(classifier), source.unknown_labels)
    own = dict(zip(names, classifier.classes_, strict=True))
    return np.array([*(own.get(name, name) for name in found), None], object)[:-1]


def _truth(model: Model, rows: LabeledData, source: DataFlags) -> LabelMatrix:
    """Return the labels of the data in the order of the model; raise if labels are missing."""
    names = model_rows.names_of(model)
    hierarchy = getattr(model_rows.classifier_of(model), "_hierarchy", None)
    truth, columns = known_labels(rows.Y, names, source.unknown_labels, hierarchy)
    absent = sorted(set(range(len(names))) - set(columns.tolist()))
    if absent:
        raise ValueError(
            f"{len(absent)} of the model's {len(names)} labels are not in the data, such as "
            f"{names[absent[0]]!r}; use data with all of them."
        )
    return truth.select_labels(np.argsort(columns))
