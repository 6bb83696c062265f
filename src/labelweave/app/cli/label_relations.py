"""Targets of a fit, labels or one class per row, and the model with its label structures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import click
import numpy as np

from labelweave import LabelText, LabelTextClassifier, Taxonomy, datasets
from labelweave.app.cli.decision_flags import with_decisions
from labelweave.app.cli.fit_request import FitRequest
from labelweave.app.cli.flags import DataFlags
from labelweave.app.cli.messages import hint
from labelweave.app.cli.relation_files import read_covariance, read_descriptions, read_graph, read_signatures
from labelweave.datasets import DataFileError, LabeledData, TableColumns
from labelweave.datasets.any_file import NUMBERED
from labelweave.datasets.csr_parts import label_numbers
from labelweave.estimators.label_graph.choice import GRAPHS
from labelweave.labels import ClassProbabilities, LabelCovariance, LabelMatrix
from labelweave.labels.taxonomy.constructors import path_divider
from labelweave.labels.taxonomy.node_graph import listed
from labelweave.metrics.known_labels import classes_of_labels

Pairs = tuple[tuple[str, str], ...]
Columns = TableColumns | None  # the columns of the training table; None for other formats


@dataclass(frozen=True)
class Targets:
    """The targets of a fit: labels (n, L), or one class per row, None where unknown, or probabilities.

    rows: without rows of unknown class if the model cannot use them.
    """

    rows: LabeledData
    y: Any
    names: list[str]

    @property
    def are_classes(self) -> bool:
        return not isinstance(self.y, LabelMatrix)


def in_taxonomy(request: FitRequest, rows: Any) -> tuple[FitRequest, Any]:
    """Read the taxonomy of a file, rename the labels of rows to match it, and print which it lacks."""
    if request.flags.data_taxonomy and not rows.parents:
        raise click.UsageError("--data-taxonomy: the data hold no taxonomy; use --taxonomy.")
    path, are_classes = request.tree_file, _wants_classes(request)
    if path is None:
        return request, rows
    given = datasets.read_taxonomy(path, request.flags.relations or ("is_a",))
    outside = request.flags.outside
    is_separate = rows is None or rows.label_names is None or request.flags.label_descriptions
    if is_separate or (are_classes and outside is None and not all(name in given for name in rows.Y.words)):
        return replace(request, tree=given), rows  # the reader of classes raises for them
    found = given.matched(rows.Y, outside or "raise")
    if found.renamed:
        hint(
            f"{len(found.renamed)} of {rows.Y.n_labels} labels are synonyms of terms in {path}, renamed: "
            f"{listed([f'{old} is {new}' for old, new in found.renamed.items()])}."
        )
    if found.outside:
        done = "dropped" if outside == "drop" else "kept as roots"
        n = rows.Y.n_labels
        hint(f"{len(found.outside)} of {n} labels are not in {path} and are {done}: {listed(found.outside)}.")
    return replace(request, tree=found.taxonomy), replace(rows, Y=found.labels)


def with_obedience(request: FitRequest, targets: Targets) -> FitRequest:
    """Enforce the hierarchy of the labels if no flag decides this, and print it."""
    tree, flags = request.tree or targets.rows.taxonomy, request.flags
    if tree is None or targets.are_classes or flags.label_descriptions or "enforce" in request.decisions:
        return request
    below = tree.at_or_above(targets.names)
    n_below = int(np.count_nonzero(np.diff(below.indptr) > 1))
    source = flags.taxonomy or request.data
    if n_below:
        hint(
            f"{n_below} of {len(targets.names)} labels lie below others in the hierarchy of {source}: it "
            "completes rows, and predictions obey it (--enforce max; use none to turn this off)."
        )
        return replace(request, flags=DataFlags(**vars(flags) | {"enforce": {"enforce": "max"}}))
    if flags.taxonomy and not request.has("label_covariance") and not request.has("taxonomy"):
        hint(f"no label lies below another in {source}, so it has no effect on {request.model}.")
    return request


def training_targets(rows: LabeledData, request: FitRequest) -> Targets:
    """Return the targets of a fit; raise for one class per row if rows have several."""
    knows_trees = request.has("taxonomy")
    if not _wants_classes(request):
        return Targets(rows, rows.Y, rows.Y.words)
    is_tree = rows.parents is not None
    if is_tree and request.one_class is None and (why := _why_no_class(rows)):
        hint(f"{why}; every class is a label with a logistic loss, and the hierarchy is their prior.")
        return Targets(rows, rows.Y, rows.Y.words)
    if rows.Y.flip_probabilities is not None:
        return Targets(rows, ClassProbabilities.of_labels(rows.Y, rows.Y.words), rows.Y.words)
    classes = rows.classes if is_tree else classes_of_labels(rows.Y, rows.Y.words, None)
    names = sorted({name for name in classes if name is not None})
    if not knows_trees:
        known = np.flatnonzero(classes != None)  # noqa: E711
        by_row = {n: getattr(rows, n) for n in ("X", "Y", "row_ids", "weights", "groups")}
        some = {name: part[known] for name, part in by_row.items() if part is not None}
        rows, classes = replace(rows, **some), classes[known]
    return Targets(rows, classes, names)


def _wants_classes(request: FitRequest) -> bool:
    wanted = request.one_class
    if wanted is None:
        wanted = request.flags.class_paths or (request.has("taxonomy") and request.flags.data_taxonomy)
    if not wanted and request.value("decision") not in (None, "most_probable"):
        said = f"--decision {request.value('decision')} chooses one class per row; add --one-class."
        raise click.UsageError(said)
    return bool(wanted)


def _why_no_class(rows: LabeledData) -> str | None:
    """Return the reason why rows do not have one class in the data's hierarchy, or None."""
    taxonomy = rows.taxonomy
    if taxonomy is not None and not taxonomy.is_tree:
        return "the hierarchy of the data has classes with several parents"
    try:
        _ = rows.classes
    except ValueError as error:
        return str(error).partition(" (")[0].removesuffix(".")
    return None


def hint_at_classes(targets: Targets, request: FitRequest) -> None:
    """Print that columns hold classes, or a hint at --one-class if all rows have at most one label."""
    if (found := targets.rows.Y.class_columns) is not None:
        hint(f"rows have one class in each of the columns {', '.join(found.names)}; labels would be 0 and 1.")
    is_asked = request.model == "kernel-logistic" and request.one_class is None and not targets.are_classes
    if is_asked and len(targets.names) > 1 and int(np.diff(targets.y.positives.indptr).max(initial=0)) == 1:
        hint(
            "no row has more than one label; with --one-class the labels are classes, one per row, "
            "and probabilities sum to one (--many-labels silences this)."
        )


def model_of_targets(request: FitRequest, targets: Targets, columns: Columns) -> Any:
    if request.flags.label_descriptions:
        return _model_of_texts(request, targets)
    is_one_label = targets.are_classes and len(targets.names) == 2 and request.model == "max-margin"
    if is_one_label and request.relates_labels:
        raise click.UsageError(
            "A max-margin model reads two classes as one label, so there are no labels to relate; leave out "
            "the flags about relations, or use --model kernel-logistic."
        )
    scaling = request.value("scaling")
    more = {} if scaling is None else {"scaling": scaling}
    return model_with_relations(request, targets.names, columns, more, targets.rows)


def model_with_relations(
    request: FitRequest, names: Sequence[str], columns: Columns, more: dict[str, Any],
    rows: LabeledData | None = None,
) -> Any:  # fmt: skip
    """Make a model with the label structures of flags.

    more: further keywords of its constructor; rows: if they are in memory.
    """
    relations, graph = request.flags, request.flags.graph
    given = request.tree if relations.taxonomy else None
    known = None if rows is None else rows.taxonomy
    found = dict(more)
    if request.has("taxonomy"):
        tree = given or (known if relations.data_taxonomy else None)
        found["taxonomy"] = _tree_of_paths(names, relations.path_separator) if relations.class_paths else tree
    if request.relates_labels and request.has("label_covariance") and found.get("taxonomy") is None:
        shrink = relations.shrink
        covariance = _covariance(names, request, columns, given, () if rows is None else rows.parents or ())
        found["label_covariance"] = covariance if shrink is None else covariance.shrink(shrink)
    if request.has("graph") and graph is not None:
        found["graph"] = graph if graph in GRAPHS else read_graph(graph, names)
    decisions = request.decisions
    if request.tree is not None and "enforce" in decisions and not relations.taxonomy:
        decisions["enforce"] = {**decisions["enforce"], "taxonomy": request.tree}
    decided_by = given if given is not None else known
    return with_decisions(request.classifier(found), decisions, decided_by, random_state=request.seed)


def _tree_of_paths(names: Sequence[str], separator: str | None) -> Taxonomy:
    """Make a taxonomy from classes that are paths; print the detected separator, unless it is a slash."""
    tree = Taxonomy.from_paths(names, separator)
    below = next((name for name in names if name in tree.parents), None)
    if below is None:
        hint(
            f"warning: no class is a path, such as {names[0][:40]!r}, so the taxonomy is flat; "
            "--path-separator sets the separator of the names in a path."
        )
    elif separator is None and (sign := path_divider(names).findall(below)[0].strip()) != "/":
        hint(f"classes are paths, such as {below[:40]!r}, split at {sign!r}; --path-separator sets another.")
    return tree


def is_graph_file(request: FitRequest) -> bool:
    return request.has("graph") and request.flags.graph not in (None, *GRAPHS)


def _covariance(
    names: Sequence[str], request: FitRequest, columns: Columns, given: Taxonomy | None, parents: Pairs
) -> LabelCovariance:
    """Return the requested covariance, or the sum of several with learned weights, in an order of labels.

    given: the taxonomy of a file; parents: of the data.
    """
    relations, found = request.flags, dict[str, LabelCovariance]()
    if relations.covariance:
        found["covariance"] = read_covariance(relations.covariance, names)
    if given is not None:
        found["taxonomy"] = LabelCovariance.from_taxonomy(given, names)
    if relations.signatures:
        found["signatures"] = read_signatures(relations.signatures, names)
    if relations.covariance_from:
        labels = _other_labels(request, relations.covariance_from, columns, names)
        found["covariance-from"] = LabelCovariance.from_labels(labels)
    if relations.data_taxonomy:
        found["data-taxonomy"] = _of_pairs(names, parents)
    return LabelCovariance.weighted(found) if len(found) > 1 else next(iter(found.values()))


def _of_pairs(names: Sequence[str], parents: Pairs) -> LabelCovariance:
    tree = Taxonomy(parents)
    inside = np.isin(names, tree.nodes)  # a label in no pair is a separate tree
    membership = tree.membership([name for name, known in zip(names, inside, strict=True) if known])
    places = np.flatnonzero(inside)
    spread = np.zeros((len(inside), len(places)))
    spread[places, np.arange(len(places))] = 1.0
    return LabelCovariance.low_rank(spread @ membership, (~inside).astype(float), names)


def _other_labels(request: FitRequest, path: str, columns: Columns, names: Sequence[str]) -> LabelMatrix:
    """Read the labels of another file in an order; flags of DATA's format apply to files of that format."""
    format = datasets.detect_format(path)
    if format == "table":
        if columns is None:
            raise click.UsageError(
                f"--covariance-from {path} is a table but {request.data} is not, so its label columns are "
                "unknown; use a file of another format."
            )
        nothing: dict[str, Any] = dict.fromkeys(columns.kinds, ())
        only_labels = replace(columns, **nothing, drop=None, id=None)
        Y = datasets.read_table_columns(path, only_labels).Y
    else:
        same = columns is None and format == request.flags.format_of(request.data)
        keywords = request.flags.matrix_keywords() if same else {}
        if format == "xmc":
            keywords["all_labels"] = True
        elif format == "svmlight" and "n_labels" not in keywords and label_numbers(names) is not None:
            keywords["label_names"] = names
        Y = datasets.read_any(path, format, **keywords).Y
    place = {name: column for column, name in enumerate(Y.words)}
    absent = next((name for name in names if name not in place), None)
    if absent is not None:
        nameless = "labels without names" if format in NUMBERED else f"{Y.n_labels} labels"
        raise DataFileError(path, None, f"{nameless}, none of them {absent!r}", "every label of the data")
    return LabelMatrix.from_any(Y.select_labels([place[name] for name in names]), names)


def _model_of_texts(request: FitRequest, targets: Targets) -> Any:
    """Make the classifier of label texts around a model, by default the usual one."""
    relations, rows = request.flags, targets.rows
    given = read_descriptions(str(relations.label_descriptions))
    known, more = set(targets.names), [name for name in given if name not in targets.names]
    features = rows.feature_names if rows.vectorizer is None else rows.vectorizer.get_feature_names_out()
    silent = len(known - set(given))
    notes = list[str]()
    if silent:
        notes.append(f"{silent} of {len(known)} labels have no description; only their names are used.")
    if more:
        notes.append(
            f"{len(more)} described labels, such as {more[0][:40]!r}, are in no row; only texts predict them."
        )
    if features is None:
        notes.append(
            f"{request.data} has no feature names, so rows have no words to match; texts only determine the "
            "covariance of labels."
        )
    for words in notes:
        hint(words)
    tree = rows.taxonomy if relations.data_taxonomy else None
    tree = tree if request.tree is None else request.tree
    estimator = request.classifier({}) if request.given or request.is_model_named else None
    names = None if features is None else np.asarray(features, dtype=object)
    text = LabelText({name: given.get(name, "") for name in [*targets.names, *more]})
    return LabelTextClassifier(estimator, text, feature_names=names, taxonomy=tree, random_state=request.seed)
