"""``--compare``: other models on the same folds as the one that is asked for."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import click
from rich import box
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning

from labelweave.cli.class_rows import Targets
from labelweave.cli.data_options import Command, with_options
from labelweave.cli.messages import console
from labelweave.comparison import Comparison, compare

__all__ = ["comparison_options", "comparison_table", "models_to_compare", "run_comparison"]

_FOR_CLASSES = ("max-margin", "kernel-logistic")


def comparison_options(command: Command) -> Command:
    """Add the flags of the comparison.

    command: the function of the command.
    Returns the same one, with more flags.
    """
    return with_options(
        click.option("--compare", metavar="MODEL,...",
                     help="Before the fit, compare the model with these others, as they come without flags, "
                     "on the same folds of DATA: all metrics, seconds, size, intervals of differences."),
        click.option("--compare-folds", type=click.IntRange(2), default=5, show_default=True,
                     help="Folds of --compare, stratified by labels."),
    )(command)  # fmt: skip


def models_to_compare(text: str | None, classes: Mapping[str, Any], own: str, are_classes: bool) -> list[str]:
    """Read the names of the other models.

    text: what was given, names with commas between.
    own: the model that is asked for.
    are_classes: whether rows have one class.
    Returns the names; empty if none was given.
    Raises click.UsageError if a name is unknown, given twice or the model's own, or its model takes no
        classes.
    """
    if text is None:
        return []
    names = [name.strip() for name in text.split(",")]
    for number, name in enumerate(names):
        if name not in classes:
            raise click.UsageError(
                f"--compare names {name!r}, which is no model; there are {', '.join(classes)}."
            )
        if name == own or name in names[:number]:
            raise click.UsageError(
                f"--compare names {name} twice, with the model that is fitted; name it once."
            )
        if are_classes and name not in _FOR_CLASSES:
            raise click.UsageError(
                f"--compare names {name}, which is for many labels a row; with one class a row there are "
                f"{' and '.join(_FOR_CLASSES)}."
            )
    return names


def run_comparison(models: Mapping[str, Any], targets: Targets, folds: int, seed: int, quiet: bool) -> None:
    """Compare models, and print what came of it.

    models: the models, the reference first.
    quiet: whether to show no progress.
    Raises click.UsageError if there are fewer rows than folds.
    """
    n_rows = len(targets.rows)
    if n_rows < folds:
        raise click.UsageError(f"--compare-folds {folds} needs as many rows, but DATA has {n_rows}.")
    with warnings.catch_warnings(), console(stderr=True).status("comparing") as status:
        warnings.simplefilter("ignore", ConvergenceWarning)

        def tell(name: str, fold: int) -> None:
            if not quiet:
                status.update(f"comparing: {name}, fold {fold + 1} of {folds}")

        X, y = targets.rows.X, targets.y
        found = compare(dict(models), X, y, folds, random_state=seed, on_fit=tell)
    console().print(comparison_table(found))


def comparison_table(found: Comparison) -> Table:
    """Lay out a comparison, one row a metric."""
    folds = len(next(iter(found.values[found.reference].values())))
    caption = (
        f"mean over {folds} folds; ± is the 95 % interval of the difference to {found.reference}, * where it "
        "leaves out 0"
    )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=caption, caption_justify="left")
    table.add_column("metric", no_wrap=True)
    for model in found.models:
        table.add_column(model, justify="right", no_wrap=True)
    means = found.means()
    for metric in found.metrics:
        table.add_row(metric, *_cells(found, means, metric))
    return table


def _cells(found: Comparison, means: dict[str, dict[str, float]], metric: str) -> Iterable[str]:
    for model in found.models:
        value = f"{means[model][metric]:.4g}"
        if model != found.reference:
            one = found.difference(model, metric)
            value += f" ± {(one.high - one.low) / 2:.1g}{'*' if one.is_clear else ' '}"
        yield value
