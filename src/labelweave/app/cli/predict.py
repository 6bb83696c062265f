"""``labelweave predict``: labels, classes or probabilities of rows, in blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import click
import numpy as np
import scipy.sparse as sp

from labelweave.app.cli.answer_files import Columns, Record, chosen_format, write_answers
from labelweave.app.cli.flags import DataFlags
from labelweave.app.cli.messages import flag_of, is_given, note, refuse, require_writable, short
from labelweave.app.cli.model_rows import RowBlock, classifier_of, has_one_class_a_row, open_model, row_blocks
from labelweave.decisions import layers
from labelweave.estimators import LabelGraphClassifier
from labelweave.foundation.array_types import Array, PerRow
from labelweave.labels.label_names import as_text
from labelweave.metrics.known_labels import has_columns, label_probabilities
from labelweave.postprocessing import rejected
from labelweave.postprocessing.hierarchy import Terms, chosen_terms


class Answers(NamedTuple):
    """A format of predictions: the columns of the table, and the record of each row, its name under "id".

    are_sets: whether these are exactly the predicted label sets.
    """

    columns: Columns
    records: Callable[[RowBlock], Iterator[Record]]
    are_sets: bool = False


def run(flags: DataFlags) -> None:
    out = None if flags.out == "-" else flags.out
    format = chosen_format(out, flags.output_format)
    require_writable(out, flags.model, flags.data, flags.xml, *(flags.vectors or ()))
    loaded = open_model(flags.model, flags.key)
    classifier: Any = classifier_of(loaded)
    refuse(_refused_wishes(classifier, flags))
    answers = _answers(classifier, flags)
    if format != "jsonl":
        fixed, labels, classes = answers.columns
        if (twice := next((name for name in fixed if name in (*labels, *classes)), None)) is not None:
            raise click.UsageError(
                f"The model has a label {twice!r}, which would be a second column of this name in a table; "
                "use --output-format jsonl."
            )
    blocks = row_blocks(loaded, flags.data, flags)
    if answers.are_sets and (promise := layers.guarantee_words(classifier)) is not None:
        note(f"guaranteed of these label sets: {promise}.")
    records = (record for block in blocks for record in answers.records(block))
    write_answers(records, answers.columns, out, format)


def _refused_wishes(classifier: Any, flags: DataFlags) -> Iterator[str]:
    kind, one_class = type(classifier).__name__, has_one_class_a_row(classifier)
    given = [name for name, value in vars(flags).items() if is_given(value)]
    listing = next((name for name in ("top", "threshold") if name in given), None)
    wish = "reject_below" if "reject_below" in given else "probabilities"
    printed = listing or ("probabilities" if "probabilities" in given else None)
    threshold, reject_below = flags.threshold or 0.0, flags.reject_below or 0.0
    is_share = not _gives_probabilities(classifier, flags) or 0 <= threshold <= 1
    otherwise = "leave it out for the predicted label sets."
    wrong = (
        (wish, layers.with_probabilities(classifier) is None, f"needs probabilities, which a {kind} lacks; "
         "fit a model with --model kernel-logistic, or with --calibrate."),
        ("reject_below", math.isnan(reject_below), "is nan; use a number from 0 to 1."),
        ("reject_below", not one_class, "is for one class per row, but this model has many labels per row."),
        ("reject_below", listing, f"prints at most one class per row, but --{listing} lists several."),
        ("threshold", math.isnan(threshold), f"is nan; use a number, or {otherwise}"),
        ("threshold", not is_share, f"is {threshold:g}, but it is compared with probabilities here; use a "
         f"number from 0 to 1, or {otherwise}"),
        ("terms", layers.taxonomy_of(classifier) is None, "needs a hierarchy, which this model lacks; fit "
         "one with --enforce max."),
        ("terms", one_class, "is for label sets, but this model predicts one class per row."),
        ("certificates", "terms" in given, "are for whole label sets, but --terms prints others."),
        ("terms", flags.terms == "closed" and "top" in given, "closed adds ancestors to the labels of --top; "
         "use --threshold instead."),
        ("probabilities", "terms" in given and listing is None, "prints all labels, but --terms selects "
         "some; add --threshold 0.5."),
        ("certificates", not isinstance(classifier, LabelGraphClassifier), "are for label-graph models, but "
         f"this is a {kind}."),
        ("certificates", one_class, "are for label sets, but this model predicts one class per row."),
        ("certificates", printed, f"are for whole label sets, but --{printed} prints others."),
    )  # fmt: skip
    return (f"{flag_of(flag)} {why}" for flag, is_wrong, why in wrong if flag in given and is_wrong)


def _gives_probabilities(classifier: Any, flags: DataFlags) -> bool:
    return flags.probabilities or hasattr(classifier, "predict_proba")


def _answers(classifier: Any, flags: DataFlags) -> Answers:
    top, threshold, reject_below = flags.top, flags.threshold, flags.reject_below
    wants, one_class = flags.probabilities, has_one_class_a_row(classifier)
    if flags.certificates:
        columns = Columns(["id", "label", "score", "proven", "gap"], [])
        return Answers(columns, partial(_certified_sets, classifier))
    if has_columns(classifier) and top is None and threshold is None and not wants:
        names = classifier._form.columns.names
        return Answers(Columns(["id"], [], names), partial(_classes_of_columns, classifier), True)
    if top is not None or threshold is not None or not (wants or one_class):
        number = "probability" if _gives_probabilities(classifier, flags) else "score"
        terms: Terms = flags.terms or "predicted"
        lists = partial(_label_lists, classifier, top, threshold, number, terms)
        are_sets = top is None and threshold is None and terms == "predicted"
        is_search = top is not None and threshold is None and terms == "predicted" and number == "score"
        if is_search and not one_class:  # without scoring all of very many labels
            lists = partial(_best_labels, classifier, top)
        return Answers(Columns(["id", "label", number], []), lists, are_sets)
    if wants:
        columns = Columns(["id", "class"] if one_class else ["id"], [*map(str, classifier.label_names_)])
        return Answers(columns, partial(_all_probabilities, classifier, reject_below))
    number = "score" if layers.with_probabilities(classifier) is None else "probability"
    columns = Columns(["id", "class", number], [])
    return Answers(columns, partial(_one_class, classifier, reject_below, number))


def _numbers(classifier: Any, number: str, block: RowBlock) -> Array:
    """Compute scores or probabilities (n, L), or (n, 2) for two classes."""
    if number == "probability":
        source: Any = layers.with_probabilities(classifier)
        return label_probabilities(source, block.X, len(classifier.label_names_))
    scores = classifier.decision_function(block.X)
    return np.column_stack([-scores, scores]) if scores.ndim == 1 else scores


def _listed(classifier: Any, name: Any, labels: Any, number: str, values: Any) -> Record:
    """Return the labels of a row with their scores or probabilities, in this order."""
    names = classifier.label_names_
    pairs = zip(labels, values, strict=True)
    return {"id": name, "labels": [{"label": str(names[k]), number: short(value)} for k, value in pairs]}


def _label_lists(
    classifier: Any, top: int | None, threshold: float | None, number: str, terms: Terms, block: RowBlock
) -> Iterator[Record]:
    """List the best labels of every row, best first; ties are broken by the lower number.

    top: the maximum number of labels per row; without it and a threshold, the predicted labels.
    threshold: a lower bound of scores or probabilities.
    terms: the most specific of these labels, or these with their ancestors.
    """
    numbers = _numbers(classifier, number, block)
    are_candidates = np.ones(numbers.shape, bool) if threshold is None else numbers > threshold
    if top is None and threshold is None:
        are_candidates = layers.shown_labels(classifier, block.X).predicted
    taxonomy = None if terms == "predicted" else layers.taxonomy_of(classifier)
    if taxonomy is not None:
        sets = chosen_terms(sp.csr_array(are_candidates), taxonomy, classifier.label_names_, terms)
        are_candidates = sets.toarray() > 0
    for name, values, is_candidate in zip(block.ids, numbers, are_candidates, strict=True):
        candidates = np.flatnonzero(is_candidate)
        chosen = candidates[np.argsort(-values[candidates], kind="stable")][:top]
        yield _listed(classifier, name, chosen, number, values[chosen])


def _best_labels(classifier: Any, top: int, block: RowBlock) -> Iterator[Record]:
    best = classifier.predict_top(block.X, min(top, len(classifier.label_names_)))
    for name, labels, scores in zip(block.ids, *best, strict=True):
        yield _listed(classifier, name, labels, "score", scores)


def _certified_sets(classifier: Any, block: RowBlock) -> Iterator[Record]:
    """List the labels of every row, and whether the set is proven to have the highest score."""
    scores, found = _numbers(classifier, "score", block), classifier.predict_map(block.X)
    rows = zip(block.ids, found.labels, scores, found.proven.tolist(), found.gaps, strict=True)
    for name, chosen, values, is_proven, gap in rows:
        order = np.flatnonzero(chosen)[np.argsort(-values[chosen > 0], kind="stable")]
        listed = _listed(classifier, name, order, "score", values[order])
        yield listed | {"proven": is_proven, "gap": short(gap)}


def _one_class(classifier: Any, reject_below: float | None, number: str, block: RowBlock) -> Iterator[Record]:
    values = _numbers(classifier, number, block)
    decided = _classes(classifier, block, values, reject_below)
    for name, chosen, word, row in zip(block.ids, *decided, values, strict=True):
        yield {"id": name, "class": word, number: short(row[chosen])}


def _classes_of_columns(classifier: Any, block: RowBlock) -> Iterator[Record]:
    columns = classifier._form.columns
    sets = columns.apart(layers.shown_labels(classifier, block.X).predicted)
    words = [np.array([as_text(one) for one in column.classes])[own.argmax(axis=1)].tolist()
             for column, own in zip(columns, sets, strict=True)]  # fmt: skip
    for name, *row in zip(block.ids, *words, strict=True):
        yield {"id": name, "classes": dict(zip(columns.names, row, strict=True))}


def _all_probabilities(classifier: Any, reject_below: float | None, block: RowBlock) -> Iterator[Record]:
    names, values = list(map(str, classifier.label_names_)), _numbers(classifier, "probability", block)
    words: list[Record] = [{} for _ in block.ids]
    if has_one_class_a_row(classifier):
        words = [{"class": word} for word in _classes(classifier, block, values, reject_below)[1]]
    for name, word, row in zip(block.ids, words, values, strict=True):
        yield {"id": name} | word | {"probabilities": dict(zip(names, map(short, row), strict=True))}


def _classes(
    classifier: Any, block: RowBlock, values: Array, reject_below: float | None
) -> tuple[PerRow, PerRow]:
    """Return the number and name of every row's class; None where the model abstains."""
    chosen = layers.chosen_classes(classifier, values, lambda: classifier.predict(block.X))
    words = classifier.label_names_[chosen].astype(object)
    if reject_below is not None:
        words[rejected(values, confidence=reject_below)] = None
    return chosen, words
