"""Flags that say how labels vary together, and the covariance they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import click

from labelweave import Taxonomy
from labelweave.cli.class_rows import Targets, label_words
from labelweave.cli.covariance_files import read_covariance, read_signatures, tree_covariance
from labelweave.cli.data_options import Command, Options, given_options, with_options
from labelweave.cli.messages import flag_of
from labelweave.cli.taxonomy_files import read_taxonomy
from labelweave.cli.training_rows import with_last_labels
from labelweave.datasets import (
    DataFileError,
    TableColumns,
    detect_format,
    read_any,
    read_table_columns,
)
from labelweave.labels import LabelCovariance, LabelMatrix

__all__ = ["check_covariance_options", "covariance_options", "given_covariance", "given_taxonomy"]

_SOURCES = ("taxonomy", "data_taxonomy", "covariance", "covariance_from", "signatures")


def covariance_options(command: Command) -> Command:
    """Add the flags that describe the labels.

    command: the function of the command.
    Returns the same one, with more flags.
    """
    return with_options(
        click.option("--taxonomy", metavar="FILE",
                     help="Labels share what they learn along this tree: lines parent,child (.csv, .tsv), "
                     "lines a/b/c, or nested JSON (.json)."),
        click.option("--data-taxonomy", is_flag=True, help="The same with the tree that DATA itself holds."),
        click.option("--covariance", metavar="FILE",
                     help="Prior covariance of the labels: .npy, or .csv with label names."),
        click.option("--covariance-from", metavar="FILE",
                     help="Labels vary together as they do in this data file."),
        click.option("--signatures", metavar="FILE",
                     help="Labels vary together as over these classes: lines class,label,... (.csv, .tsv); "
                     "a column 'prior' weighs them."),
        click.option("--shrink", metavar="AMOUNT", type=click.FloatRange(0, 1),
                     help="Pull the covariance towards independent labels: from 0, not at all, to 1."),
    )(command)  # fmt: skip


def check_covariance_options(options: Options) -> None:
    """Refuse flags that make no sense together.

    options: the values of all flags.
    Raises click.UsageError if two flags describe the labels, or none does and there is something to shrink.
    """
    flags = [flag_of(name) for name in (*_SOURCES, "class_paths") if options[name]]
    if len(flags) > 1:
        raise click.UsageError(f"{flags[0]} and {flags[1]} both describe the labels; give one of them.")
    if options["shrink"] is not None and not flags:
        every = ", ".join(map(flag_of, _SOURCES))
        raise click.UsageError(f"--shrink has no covariance to shrink; give one of {every} too.")


def given_covariance(
    data: str, targets: Targets, columns: TableColumns | None, options: Options
) -> LabelCovariance | None:
    """Make the covariance that the flags stand for.

    data: the file of the training rows.
    targets: the training rows and their labels or classes.
    columns: what the columns of their table were; None for other formats.
    options: the values of all flags.
    Returns the covariance in the order of the training labels or classes; None for independent ones.
    Raises click.UsageError if the data cannot have what was asked for.
    Raises ValueError if a file is malformed or lacks a label.
    """
    covariance = _from_source(data, targets, columns, options)
    if covariance is None:
        return None
    if options["model"] == "max-margin" and targets.are_classes and len(targets.names) == 2:
        raise click.UsageError(
            "Two classes are one label to a max-margin model, which leaves nothing to relate; leave out the "
            "flags about relations, or give --model kernel-logistic."
        )
    if options["factorization"] == "cholesky" and not covariance.is_diagonal:
        raise click.UsageError(
            "--factorization cholesky serves independent labels only; with a covariance give eigenvalues "
            "or incomplete_cholesky."
        )
    return covariance if options["shrink"] is None else covariance.shrink(options["shrink"])


def _from_source(
    data: str, targets: Targets, columns: TableColumns | None, options: Options
) -> LabelCovariance | None:
    names = targets.names
    if options["covariance"]:
        return read_covariance(options["covariance"], names)
    if options["taxonomy"]:
        return LabelCovariance.from_taxonomy(read_taxonomy(options["taxonomy"]), names)
    if options["data_taxonomy"]:
        return tree_covariance(_parents(targets), names)
    if options["signatures"]:
        return read_signatures(options["signatures"], names)
    if options["covariance_from"]:
        other = _other_labels(options["covariance_from"], data, columns, options)
        return LabelCovariance.from_labels(_in_order(other, names, options["covariance_from"]))
    return None


def _parents(targets: Targets) -> tuple[tuple[str, str], ...]:
    parents = targets.rows.parents
    if not parents:
        raise click.UsageError("--data-taxonomy: the data hold no taxonomy; give one with --taxonomy.")
    return parents


def given_taxonomy(targets: Targets, options: Options) -> Taxonomy | None:
    """Make the taxonomy that the flags stand for.

    targets: the training rows and their labels or classes.
    options: the values of all flags.
    Returns the tree; None if there is to be none.
    Raises click.UsageError if it is to be that of the data, which hold none.
    Raises ValueError if a file is malformed, or classes are no paths.
    """
    if options["taxonomy"]:
        return read_taxonomy(options["taxonomy"])
    if options["data_taxonomy"]:
        _parents(targets)
        return targets.rows.taxonomy
    return Taxonomy.from_paths(targets.names) if options["class_paths"] else None


def _other_labels(path: str, data: str, columns: TableColumns | None, options: Options) -> LabelMatrix:
    """Read the labels of another file; flags about the format of DATA hold for files of that format."""
    format = detect_format(path)
    if format == "table":
        if columns is None:
            raise click.UsageError(
                f"--covariance-from {path} is a table and {data} is none, so that nothing says where its "
                "labels are; give a file of another format."
            )
        only_labels = replace(columns, text=(), categorical=(), numeric=(), drop=None, id=None)
        return read_table_columns(path, only_labels).Y
    same = columns is None and format == _format_of(data, options)
    return read_any(path, format, **(given_options(options) if same else {})).Y


def _format_of(data: str, options: Options) -> str:
    return detect_format(data) if options["format"] == "auto" else str(options["format"])


def _in_order(Y: LabelMatrix, names: Sequence[str], path: str) -> LabelMatrix:
    """Give the labels of another file in the order of the training labels."""
    if Y.names is None and detect_format(path) == "svmlight":
        Y = with_last_labels(Y, len(names))
    place = {name: column for column, name in enumerate(label_words(Y))}
    absent = next((name for name in names if name not in place), None)
    if absent is not None:
        nameless = "labels without names" if Y.names is None else f"{Y.n_labels} labels"
        raise DataFileError(path, None, f"{nameless}, none of them {absent!r}", "every label of the data")
    return LabelMatrix.from_any(Y.select_labels([place[name] for name in names]), names)
