"""``labelweave fit``: read rows, fit a max-margin model, save it."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from labelweave import LabelCovariance, MaxMarginClassifier
from labelweave.cli.covariance_options import (
    check_covariance_options,
    covariance_options,
    given_covariance,
)
from labelweave.cli.data_options import (
    Options,
    column_options,
    file_options,
    label_column_options,
    with_options,
)
from labelweave.cli.kernel_options import kernel_options, kernel_parameters
from labelweave.cli.messages import note, size_of
from labelweave.cli.model_words import kernel_words, n_support_rows
from labelweave.cli.progress import show_progress
from labelweave.cli.training_rows import read_training_rows, vectorizer_options
from labelweave.datasets import LabeledData, TableColumns
from labelweave.estimators import TableModel

__all__ = ["fit"]

_INTERRUPTED = 130
_POSITIVE = click.FloatRange(min=0, min_open=True)
_NOT_NEGATIVE = click.FloatRange(min=0)


def _model_options(command: Any) -> Any:
    return with_options(
        click.option("--C", "C", type=_POSITIVE, default=1.0, show_default=True,
                     help="Weight of the losses; larger fits more closely."),
        click.option("--tol", type=_POSITIVE, default=1e-3, show_default=True,
                     help="Relative duality gap to reach."),
        click.option("--max-iter", type=click.IntRange(1), default=1000, show_default=True,
                     help="Largest number of rounds."),
        click.option("--no-intercept", is_flag=True, help="Leave the constant feature out."),
        click.option("--false-negative-cost", type=_NOT_NEGATIVE, default=1.0, show_default=True,
                     help="Cost of missing a label that is there."),
        click.option("--false-positive-cost", type=_NOT_NEGATIVE, default=1.0, show_default=True,
                     help="Cost of predicting a label that is not there."),
        click.option("--jobs", type=int, help="Threads, -1 for all [1]."),
        click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True,
                     help="Fixes the order in which rows are visited."),
    )(command)  # fmt: skip


@click.command()
@click.argument("data")
@click.option("--out", "-o", metavar="FILE", required=True, help="Where the model goes.")
@_model_options
@kernel_options
@covariance_options
@label_column_options
@column_options
@vectorizer_options
@file_options
@click.option("--quiet", "-q", is_flag=True, help="Write nothing but warnings and errors.")
@click.pass_context
def fit(context: click.Context, /, data: str, out: str, quiet: bool, **options: Any) -> None:
    """Fit a model to a data file and save it.

    Labels that are missing in DATA count as not observed.  Ctrl-C ends the fit
    early: the best model so far is saved.

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
    """
    _require_writable(out)
    kernel = kernel_parameters(options)
    check_covariance_options(options)
    rows, columns = read_training_rows(data, options)
    model = _classifier(options, kernel, given_covariance(data, rows, columns, options))
    seconds = _fit(model if quiet else show_progress(model), rows)
    _storable(model, rows, columns).save(out)
    if not quiet:
        _print_summary(model, rows, seconds, out)
    if not model.converged_:
        context.exit(_explain_early_end(model, out))


def _require_writable(out: str) -> None:
    """Refuse a place where no file can go before the long fit, not after it."""
    if Path(out).is_dir():
        raise click.UsageError(f"--out {out} is a directory; give the name of a file.")
    if not Path(out).resolve().parent.is_dir():
        raise click.UsageError(f"--out {out} lies in a directory that does not exist; make it first.")


def _classifier(options: Options, kernel: Options, covariance: LabelCovariance | None) -> MaxMarginClassifier:
    same = ("C", "tol", "max_iter", "false_negative_cost", "false_positive_cost")
    make: Any = MaxMarginClassifier
    classifier: MaxMarginClassifier = make(
        **{name: options[name] for name in same},
        **kernel,
        fit_intercept=not options["no_intercept"],
        label_covariance=covariance,
        n_jobs=options["jobs"],
        random_state=options["seed"],
    )
    return classifier


def _fit(model: MaxMarginClassifier, rows: LabeledData) -> float:
    """Fit and give the seconds it took."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # said at the end, in terms of the flags
        model.fit(rows.X, rows.Y)
    return time.perf_counter() - started


def _storable(model: MaxMarginClassifier, rows: LabeledData, columns: TableColumns | None) -> Any:
    if rows.vectorizer is not None:
        return TableModel(rows.vectorizer, model, columns)
    if rows.feature_names is not None:
        model.feature_names_in_ = np.asarray(rows.feature_names, dtype=object)
    return model


def _print_summary(model: MaxMarginClassifier, rows: LabeledData, seconds: float, out: str) -> None:
    support = n_support_rows(model)
    lines = {
        "rows": str(len(rows)),
        "features": str(rows.X.shape[1]),
        "labels": str(rows.Y.n_labels),
        "kernel": kernel_words(model),
        **({} if support is None else {"support": f"{support} of {len(rows)} rows"}),
        "rounds": str(model.n_iter_),
        "gap": f"{model.duality_gap_:.2e} (asked for {model.tol:g})",
        "seconds": f"{seconds:.1f}",
        "model": f"{out} ({size_of(out)})",
    }
    for name, value in lines.items():
        click.echo(f"{name:10}{value}", err=True)


def _explain_early_end(model: MaxMarginClassifier, out: str) -> int:
    """Say in one line why the fit ended before its gap was reached; give the exit code."""
    reached = f"after {model.n_iter_} rounds at a gap of {model.duality_gap_:.2e}"
    if model.status_ == "interrupted":
        note(f"interrupted {reached}; the best model so far is saved in {out}.")
        return _INTERRUPTED
    note(
        f"warning: the fit ended {reached}, above --tol {model.tol:g}; raise --max-iter, lower --C, "
        "or scale the features."
    )
    return 0
