"""The form of targets in a model file: the fields, and their consistency."""

from __future__ import annotations

from typing import Any

from labelweave.labels.class_columns import ClassColumns
from labelweave.model_files import ModelFileError, schema


def _has_names_of_columns(frame: dict[str, Any]) -> bool:
    labels, levels = frame["labels"], frame["level_names"]
    if labels is None:
        return True
    if frame["library"] != "pandas":
        return all(type(label) is int for label in labels)
    n_levels = 1 if levels is None else len(levels)
    return n_levels == 1 or all(type(label) is tuple and len(label) == n_levels for label in labels)


_LABEL = schema.Maybe(schema.Number(), schema.TEXT, schema.FLAG)  # of a column, or of its levels
_FRAME = schema.Record(
    {
        "library": schema.TEXT,
        "labels": schema.Maybe(schema.Items(schema.Maybe(_LABEL, schema.Items(_LABEL, kind=tuple)))),
        "level_names": schema.Maybe(schema.Items(_LABEL, least=1)),
    },
    {"columns are called as their library and levels allow": _has_names_of_columns},
)
FORM: dict[str, schema.Field] = {
    "form": schema.Record(
        {
            "kind": schema.OneOf(("labels", "binary", "multiclass")),
            "container": schema.OneOf(("array", "sparse", "frame", "tags")),
            "negative": schema.OneOf((0, -1)),
            "frame": schema.Optional(_FRAME),
            "unobserved": schema.Optional(schema.Items(schema.count(), kind=(list, tuple))),
            "columns": schema.Optional(schema.Made(ClassColumns)),
        }
    ),
    "classes": schema.Maybe(schema.Texts("C"), schema.Numbers("C", "iufb"), none=False),
    "classes_are_objects": schema.FLAG,
}
"""What a model file has of the form of targets."""


def check_columns(kind: str, sizes: schema.Sizes) -> None:
    """Raise if the numbers of scores, and of values per score, do not match the classes or labels."""
    n_classes = sizes["C"]
    columns = 1 if kind == "binary" else n_classes
    fits = sizes.get("K", columns) == columns and (n_classes == 2 or kind != "binary") and n_classes > 0
    scores = sizes.get("L", columns)
    if not fits or not (scores == columns or (kind == "binary" and scores == 2)):
        raise ModelFileError(f"its numbers of labels do not agree: {n_classes} {kind}, {scores} scores.")
