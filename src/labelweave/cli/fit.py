"""``labelweave fit``: read rows, fit a model, save it."""

from __future__ import annotations

import time
import warnings
from typing import Any

import click
import numpy as np
from sklearn.exceptions import ConvergenceWarning

import labelweave
from labelweave import baselines
from labelweave.cli.class_rows import (
    Targets,
    check_class_options,
    class_options,
    hint_at_classes,
    training_targets,
)
from labelweave.cli.comparison_options import comparison_options, models_to_compare, run_comparison
from labelweave.cli.covariance_options import (
    check_covariance_options,
    covariance_options,
    given_covariance,
    given_taxonomy,
)
from labelweave.cli.data_options import (
    Options,
    column_options,
    file_options,
    label_column_options,
)
from labelweave.cli.decision_options import (
    check_decision_options,
    decides,
    decision_options,
    shown_name,
    wrapped,
)
from labelweave.cli.fit_words import explain_end, print_summary
from labelweave.cli.kernel_options import kernel_options, kernel_parameters
from labelweave.cli.label_graph_options import given_graph, label_graph_options
from labelweave.cli.low_rank_options import low_rank_options
from labelweave.cli.model_flags import model_parameters
from labelweave.cli.model_options import check_model_options, logistic_options, model_options
from labelweave.cli.output_place import require_writable
from labelweave.cli.progress import show_progress
from labelweave.cli.rank_choice_options import chooses_rank, parameters_to_choose
from labelweave.cli.several_fits import end_at_interrupts
from labelweave.cli.training_rows import read_training_rows, vectorizer_options
from labelweave.datasets import LabeledData, TableColumns
from labelweave.decisions.layers import layers
from labelweave.estimators import TableModel

__all__ = ["fit"]

_CLASSES: dict[str, Any] = {  # scikit-learn's classes carry no types
    "max-margin": labelweave.MaxMarginClassifier,
    "kernel-logistic": labelweave.KernelLogisticClassifier,
    "low-rank": labelweave.LowRankClassifier,
    "label-graph": labelweave.LabelGraphClassifier,
    "binary-relevance": baselines.BinaryRelevance,
    "plst": baselines.PLST,
    "cplst": baselines.CPLST,
    "wsabie": baselines.WSABIE,
}
_CHOOSING: Any = labelweave.LowRankClassifierCV


@click.command()
@click.argument("data")
@click.option("--out", "-o", metavar="FILE", required=True, help="Where the model goes.")
@model_options
@kernel_options
@logistic_options
@low_rank_options
@label_graph_options
@covariance_options
@decision_options
@label_column_options
@class_options
@comparison_options
@column_options
@vectorizer_options
@file_options
@click.option("--quiet", "-q", is_flag=True, help="Write nothing but warnings and errors.")
@click.pass_context
def fit(context: click.Context, /, data: str, out: str, quiet: bool, **options: Any) -> None:
    """Fit a model to a data file and save it.

    Labels that are missing in DATA count as not observed.  Ctrl-C ends the fit
    early: the best model so far is saved; with --tune-threshold, --calibrate or
    --conformal, which fit several times, nothing is.

    \b
    Examples:
      labelweave fit bibtex-train.arff --xml bibtex.xml --out bibtex.lw
      labelweave fit train.txt --C 0.5 --jobs 2 --out eurlex.lw
      labelweave fit packages.jsonl --text description --categorical section \\
          --labels tags --id package --taxonomy facets.csv --out tags.lw
      labelweave fit movies.csv --text plot --label-column comedy \\
          --label-column drama --out movies.lw
      labelweave fit scene-train.arff --kernel rbf --gamma 0.5 \\
          --covariance-from scene-old.arff --shrink 0.1 --out scene.lw
      labelweave fit animals.csv --model kernel-logistic --text description \\
          --labels species --one-class --out animals.lw
      labelweave fit images.arff --model kernel-logistic --data-taxonomy \\
          --tie level --out images.lw
      labelweave fit bookmarks-train.arff --model low-rank --rank 0.4 --out bookmarks.lw
      labelweave fit bookmarks-train.arff --model low-rank --ranks 0.2,0.4,0.6 \\
          --regularizations 0.1,1,10 --scoring precision_at_1 --out bookmarks.lw
      labelweave fit scene-train.arff --model label-graph --early-stopping --out scene.lw
      labelweave fit scene-train.arff --tune-threshold macro_f1,cv=5 --out scene.lw
      labelweave fit scene-train.arff --calibrate isotonic \\
          --conformal false_negatives,level=0.2 --out scene.lw
      labelweave fit scene-train.arff --compare low-rank,binary-relevance --out scene.lw
    """
    require_writable(out)
    kernel = _checked_flags(context, options)
    rows, columns = read_training_rows(data, options)
    targets = training_targets(rows, options)
    if not quiet:
        hint_at_classes(targets, options)
    _refuse_classes(targets, options)
    scorer = _classifier(data, targets, columns, options | {"kernel": kernel})
    model = wrapped(scorer, options)
    others = models_to_compare(options["compare"], _CLASSES, options["model"], targets.are_classes)
    if others:
        models = {shown_name(options): model} | {name: _CLASSES[name]() for name in others}
        run_comparison(models, targets, options["compare_folds"], options["seed"], quiet)
    seconds = _fit(end_at_interrupts(model if quiet else show_progress(model)), targets)
    _storable(model, rows, columns).save(out)
    if not quiet:
        print_summary(model, len(targets.y), seconds, out)
    context.exit(explain_end(model, out))


def _checked_flags(context: click.Context, options: Options) -> Options:
    """Refuse flags that make no sense together; give those of the kernel in the words of the classifier."""
    check_class_options(options)
    check_covariance_options(options)
    check_model_options(context, options)
    check_decision_options(options)
    return kernel_parameters(options)


def _refuse_classes(targets: Targets, options: Options) -> None:
    """Refuse to choose label sets where there are none."""
    if targets.are_classes and decides(options):
        raise click.UsageError(
            "--tune-threshold, --calibrate and --conformal are for many labels a row, but rows have one "
            "class here; leave them out, or give --many-labels."
        )


def _classifier(data: str, targets: Targets, columns: TableColumns | None, options: Options) -> Any:
    model, parameters = options["model"], model_parameters(options) | options["kernel"]
    if model == "max-margin":
        parameters["label_covariance"] = given_covariance(data, targets, columns, options)
    if model == "kernel-logistic":
        taxonomy = given_taxonomy(targets, options)
        covariance = None if taxonomy is not None else given_covariance(data, targets, columns, options)
        parameters |= {"taxonomy": taxonomy, "label_covariance": covariance}
    if model == "label-graph":
        parameters |= given_graph(targets.names, options)
    if chooses_rank(options):
        return _CHOOSING(**parameters_to_choose(parameters))
    return _CLASSES[model](**parameters)


def _fit(model: Any, targets: Targets) -> float:
    """Fit and give the seconds it took."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # said at the end, in terms of the flags
        model.fit(targets.rows.X, targets.y)
    return time.perf_counter() - started


def _storable(model: Any, rows: LabeledData, columns: TableColumns | None) -> Any:
    if rows.vectorizer is not None:
        return TableModel(rows.vectorizer, model, columns)
    if rows.feature_names is not None:
        for layer in layers(model):
            layer.feature_names_in_ = np.asarray(rows.feature_names, dtype=object)
    return model
