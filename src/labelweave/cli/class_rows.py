"""One class a row: which rows have which, in data for training and for comparison."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import click
import numpy as np

from labelweave.array_types import Array
from labelweave.cli.data_options import Command, Options, with_options
from labelweave.cli.messages import note
from labelweave.datasets import LabeledData
from labelweave.labels import LabelMatrix
from labelweave.metrics.known_labels import classes_of_labels

__all__ = [
    "Targets",
    "check_class_options",
    "class_options",
    "hint_at_classes",
    "label_words",
    "training_targets",
]


@dataclass(frozen=True)
class Targets:
    """What a model is fitted to.

    rows: the rows; those without a class are left out where a model cannot use them.
    y (n, L): labels; or one class a row, None where it is not known.
    names: the labels, or the classes that rows have, sorted.
    """

    rows: LabeledData
    y: Any
    names: list[str]

    @property
    def are_classes(self) -> bool:
        """Whether there is one class a row."""
        return not isinstance(self.y, LabelMatrix)


def class_options(command: Command) -> Command:
    """Add the flags that say whether rows have one class or many labels.

    command: the function of the command.
    Returns the same one, with more flags.
    """
    return with_options(
        click.option("--one-class/--many-labels", default=None,
                     help="Every row has one class, or none where it is not known; or it has any number of "
                     "labels [many; one with --class-paths, and for kernel-logistic with --data-taxonomy]."),
        click.option("--class-paths", is_flag=True,
                     help="kernel-logistic: classes are paths such as a/b/c in a taxonomy; shorter ones "
                     "are known in part."),
    )(command)  # fmt: skip


def check_class_options(options: Options) -> None:
    """Refuse flags that make no sense together.

    options: the values of all flags.
    Raises click.UsageError if there are any.
    """
    flag = "--one-class" if options["one_class"] else "--class-paths"
    if options["class_paths"] and options["one_class"] is False:
        raise click.UsageError("--class-paths has one class a row, which --many-labels rules out.")
    if (options["one_class"] or options["class_paths"]) and options["label_separator"]:
        raise click.UsageError(f"--label-separator lists several labels a row, but {flag} wants one class.")


def training_targets(rows: LabeledData, options: Options) -> Targets:
    """Say what to fit a model to.

    options: the values of the command's flags.
    Raises click.UsageError if a flag needs one class a row.
    Raises ValueError if there is to be one class a row, but rows have several; one is named.
    """
    is_logistic, decision = options["model"] == "kernel-logistic", options["decision"]
    wanted = options["one_class"]
    if wanted is None:
        wanted = options["class_paths"] or (is_logistic and options["data_taxonomy"])
    if not wanted:
        if decision not in (None, "most_probable"):
            raise click.UsageError(f"--decision {decision} chooses one class a row; give --one-class too.")
        return Targets(rows, rows.Y, label_words(rows.Y))
    classes = _classes_of(rows)
    names = sorted({name for name in classes if name is not None})
    if not is_logistic:
        rows, classes = _with_class(rows, classes)
    return Targets(rows, classes, names)


def _with_class(rows: LabeledData, classes: Array) -> tuple[LabeledData, Array]:
    known = np.flatnonzero(classes != None)  # noqa: E711
    ids = None if rows.row_ids is None else rows.row_ids[known]
    return replace(rows, X=rows.X[known], Y=rows.Y[known], row_ids=ids), classes[known]


def hint_at_classes(targets: Targets, options: Options) -> None:
    """Tell who asks for probabilities of single labels that they may be those of one class a row.

    targets: what a model is fitted to.
    options: the values of the command's flags.
    """
    if options["model"] != "kernel-logistic" or options["one_class"] is not None or targets.are_classes:
        return
    if len(targets.names) > 1 and int(np.diff(targets.y.positives.indptr).max(initial=0)) == 1:
        note(
            "no row has more than one label; with --one-class the labels are classes, of which every row has "
            "one, and probabilities sum to one (--many-labels silences this)."
        )


def label_words(Y: LabelMatrix) -> list[str]:
    """Give the names of labels, or their numbers as text.

    Shapes: Y (n, L).
    """
    return [str(name) for name in (range(Y.n_labels) if Y.names is None else Y.names)]


def _classes_of(rows: LabeledData) -> Array:
    """Give the class of every row, None for rows without a label."""
    if rows.parents is not None:
        return rows.classes
    return classes_of_labels(rows.Y, label_words(rows.Y), None)
