"""What a model is fitted to, labels or one class a row, and the structures over them from flags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import click
import numpy as np

from labelweave import Taxonomy
from labelweave.app.cli.fit_request import FitRequest
from labelweave.app.cli.messages import note
from labelweave.app.cli.model_rows import with_last_labels
from labelweave.app.cli.relation_files import read_covariance, read_graph, read_signatures
from labelweave.datasets import (
    DataFileError,
    LabeledData,
    TableColumns,
    detect_format,
    read_any,
    read_table_columns,
    read_taxonomy,
)
from labelweave.estimators.label_graph.choice import GRAPHS
from labelweave.labels import ClassProbabilities, LabelCovariance, LabelMatrix
from labelweave.metrics.known_labels import classes_of_labels

Pairs = tuple[tuple[str, str], ...]
Columns = TableColumns | None  # what the columns of the training table were; None for other formats


@dataclass(frozen=True)
class Targets:
    """What a model is fitted to: labels (n, L), or one class a row, None where it is not known, or probable.

    rows: without those of no class where a model cannot use them.
    """

    rows: LabeledData
    y: Any
    names: list[str]

    @property
    def are_classes(self) -> bool:
        """Whether there is one class a row."""
        return not isinstance(self.y, LabelMatrix)


def training_targets(rows: LabeledData, request: FitRequest) -> Targets:
    """Say what to fit a model to; refuse one class a row where rows have several."""
    knows_trees = request.has("taxonomy")
    wanted = request.one_class
    if wanted is None:
        wanted = request.relations.class_paths or (knows_trees and request.relations.data_taxonomy)
    if not wanted:
        if request.value("decision") not in (None, "most_probable"):
            said = f"--decision {request.value('decision')} chooses one class a row; give --one-class too."
            raise click.UsageError(said)
        return Targets(rows, rows.Y, rows.Y.words)
    is_tree = rows.parents is not None
    if is_tree and request.one_class is None and (why := _why_no_class(rows)):
        if not request.quiet:
            note(f"{why}; every class is a label with a logistic loss, and the hierarchy is their prior.")
        return Targets(rows, rows.Y, rows.Y.words)
    if rows.Y.doubts is not None:
        return Targets(rows, ClassProbabilities.of_labels(rows.Y, rows.Y.words), rows.Y.words)
    classes = rows.classes if is_tree else classes_of_labels(rows.Y, rows.Y.words, None)
    names = sorted({name for name in classes if name is not None})
    if not knows_trees:
        known = np.flatnonzero(classes != None)  # noqa: E711
        ids = None if rows.row_ids is None else rows.row_ids[known]
        rows, classes = replace(rows, X=rows.X[known], Y=rows.Y[known], row_ids=ids), classes[known]
    return Targets(rows, classes, names)


def _why_no_class(rows: LabeledData) -> str | None:
    """Say why rows have no one class in the hierarchy of the data; None if they have."""
    taxonomy = rows.taxonomy
    if taxonomy is not None and not taxonomy.is_tree:
        return "the hierarchy of the data has classes with several parents"
    try:
        _ = rows.classes
    except ValueError as error:
        return str(error).partition(" (")[0].removesuffix(".")
    return None


def hint_at_classes(targets: Targets, request: FitRequest) -> None:
    """Tell who asks for probabilities of single labels that they may be those of one class a row."""
    if request.model != "kernel-logistic" or request.one_class is not None or targets.are_classes:
        return
    if len(targets.names) > 1 and int(np.diff(targets.y.positives.indptr).max(initial=0)) == 1:
        note(
            "no row has more than one label; with --one-class the labels are classes, of which every row has "
            "one, and probabilities sum to one (--many-labels silences this)."
        )


def structures(request: FitRequest, targets: Targets, columns: Columns) -> dict[str, Any]:
    """Make what the flags say about the labels, as keywords of the model's constructor."""
    found: dict[str, Any] = {}
    if request.has("taxonomy"):
        found["taxonomy"] = _taxonomy(request, targets)
    if request.has("label_covariance") and found.get("taxonomy") is None:
        found["label_covariance"] = _covariance(request, targets, columns)
    if request.has("graph") and request.graph is not None:
        found["graph"] = graph_over(targets.names, request.graph)
    return found


def is_graph_file(request: FitRequest) -> bool:
    """Say whether the labels' graph is in a file."""
    return bool(request.has("graph")) and request.graph is not None and request.graph not in GRAPHS


def graph_over(names: Sequence[str], graph: str) -> Any:
    """Give the graph that a flag asks for, by its word or from its file."""
    return graph if graph in GRAPHS else read_graph(graph, names)


def _covariance(request: FitRequest, targets: Targets, columns: Columns) -> LabelCovariance | None:
    """Make the covariance in the order of the training labels or classes; None for independent ones."""
    covariance = covariance_over(targets.names, request, columns, targets.rows.parents)
    if covariance is None:
        return None
    if request.model == "max-margin" and targets.are_classes and len(targets.names) == 2:
        raise click.UsageError(
            "Two classes are one label to a max-margin model, which leaves nothing to relate; leave out the "
            "flags about relations, or give --model kernel-logistic."
        )
    return covariance


def covariance_over(
    names: Sequence[str], request: FitRequest, columns: Columns, parents: Pairs | None = None
) -> LabelCovariance | None:
    """Make the covariance that flags give, in an order of labels; None for independent ones.

    parents: the taxonomy that came with the data.
    """
    covariance, shrink = _from_source(names, request, columns, parents), request.relations.shrink
    if covariance is None:
        return None
    return covariance if shrink is None else covariance.shrink(shrink)


def _from_source(
    names: Sequence[str], request: FitRequest, columns: Columns, parents: Pairs | None
) -> LabelCovariance | None:
    relations = request.relations
    if relations.covariance:
        return read_covariance(relations.covariance, names)
    if relations.taxonomy:
        return LabelCovariance.from_taxonomy(read_taxonomy(relations.taxonomy), names)
    if relations.data_taxonomy:
        return _tree_covariance(_given(parents), names)
    if relations.signatures:
        return read_signatures(relations.signatures, names)
    if relations.covariance_from:
        other = _other_labels(request, relations.covariance_from, columns)
        return LabelCovariance.from_labels(_in_order(other, names, relations.covariance_from))
    return None


def _given(parents: Pairs | None) -> Pairs:
    if not parents:
        raise click.UsageError("--data-taxonomy: the data hold no taxonomy; give one with --taxonomy.")
    return parents


def _tree_covariance(pairs: Sequence[tuple[str, str]], names: Sequence[str]) -> LabelCovariance:
    """Make the covariance of a tree that came with the data; a label in no pair is a tree of its own."""
    tree = Taxonomy(pairs)
    inside = np.isin(names, tree.nodes)
    membership = tree.membership([name for name, known in zip(names, inside, strict=True) if known])
    places = np.flatnonzero(inside)
    spread = np.zeros((len(inside), len(places)))
    spread[places, np.arange(len(places))] = 1.0
    return LabelCovariance.low_rank(spread @ membership, (~inside).astype(float), names)


def _taxonomy(request: FitRequest, targets: Targets) -> Taxonomy | None:
    """Make the tree, if there is to be one."""
    relations = request.relations
    if relations.taxonomy:
        return read_taxonomy(relations.taxonomy)
    if relations.data_taxonomy:
        _given(targets.rows.parents)
        return targets.rows.taxonomy
    return Taxonomy.from_paths(targets.names) if relations.class_paths else None


def _other_labels(request: FitRequest, path: str, columns: Columns) -> LabelMatrix:
    """Read the labels of another file; flags about the format of DATA hold for files of that format."""
    format = detect_format(path)
    if format == "table":
        if columns is None:
            raise click.UsageError(
                f"--covariance-from {path} is a table and {request.data} is none, so that nothing says where "
                "its labels are; give a file of another format."
            )
        only_labels = replace(columns, text=(), categorical=(), numeric=(), drop=None, id=None)
        return read_table_columns(path, only_labels).Y
    same = columns is None and format == request.source.format_of(request.data)
    return read_any(path, format, **(request.source.matrix_keywords() if same else {})).Y


def _in_order(Y: LabelMatrix, names: Sequence[str], path: str) -> LabelMatrix:
    """Give the labels of another file in the order of the training labels."""
    if Y.names is None and detect_format(path) == "svmlight":
        Y = with_last_labels(Y, len(names))
    place = {name: column for column, name in enumerate(Y.words)}
    absent = next((name for name in names if name not in place), None)
    if absent is not None:
        nameless = "labels without names" if Y.names is None else f"{Y.n_labels} labels"
        raise DataFileError(path, None, f"{nameless}, none of them {absent!r}", "every label of the data")
    return LabelMatrix.from_any(Y.select_labels([place[name] for name in names]), names)
