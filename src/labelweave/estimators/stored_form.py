"""The form of targets in a model file: the fields, and their consistency."""

from __future__ import annotations

from typing import Any

from labelweave.labels.class_columns import ClassColumns
from labelweave.model_files import ModelFileError
from labelweave.model_files.schema import (
    FLAG,
    TEXT,
    Field,
    Items,
    Made,
    Maybe,
    Number,
    Numbers,
    OneOf,
    Optional,
    Record,
    Sizes,
    Texts,
    count,
)


def _has_names_of_columns(frame: dict[str, Any]) -> bool:
    labels, levels = frame["labels"], frame["level_names"]
    if labels is None:
        return True
    if frame["library"] != "pandas":
        return all(type(label) is int for label in labels)
    n_levels = 1 if levels is None else len(levels)
    return n_levels == 1 or all(type(label) is tuple and len(label) == n_levels for label in labels)


_LABEL = Maybe(Number(), TEXT, FLAG)  # of a column, or of its levels
_FRAME = Record(
    {
        "library": TEXT,
        "labels": Maybe(Items(Maybe(_LABEL, Items(_LABEL, kind=tuple)))),
        "level_names": Maybe(Items(_LABEL, least=1)),
    },
    {"columns are called as their library and levels allow": _has_names_of_columns},
)
FORM: dict[str, Field] = {
    "form": Record(
        {
            "kind": OneOf(("labels", "binary", "multiclass")),
            "container": OneOf(("array", "sparse", "frame", "tags")),
            "negative": OneOf((0, -1)),
            "frame": Optional(_FRAME),
            "unobserved": Optional(Items(count(), kind=(list, tuple))),
            "columns": Optional(Made(ClassColumns)),
        }
    ),
    "classes": Maybe(Texts("C"), Numbers("C", "iufb"), none=False),
    "classes_are_objects": FLAG,
}
"""What a model file has of the form of targets."""


def check_columns(kind: str, sizes: Sizes) -> None:
    """Raise if the numbers of scores, and of values per score, do not match the classes or labels."""
    n_classes = sizes["C"]
    columns = 1 if kind == "binary" else n_classes
    fits = sizes.get("K", columns) == columns and (n_classes == 2 or kind != "binary") and n_classes > 0
    scores = sizes.get("L", columns)
    if not fits or not (scores == columns or (kind == "binary" and scores == 2)):
        raise ModelFileError(f"its numbers of labels do not agree: {n_classes} {kind}, {scores} scores.")
